---------------------------- MODULE FencedWriter ----------------------------
(* Many writers serve one stream, and every update is applied at most once.  *)
(*                                                                           *)
(* A client hands its update to any writer, and when no answer comes, to any *)
(* other. A writer works in rounds:                                          *)
(*                                                                           *)
(*   read the stream  >  leave out what is in it  >  append  >  answer       *)
(*                                                                           *)
(* Writers crash with an append on the wire, which lands later; answers get  *)
(* lost; a producer sends its batch again when its session breaks.           *)
(*                                                                           *)
(* Three safeguards, each of which a configuration can take away:            *)
(*   Fence    "match": an append names the tail that its writer read;        *)
(*            "token": a round installs a fencing token before it reads, and *)
(*            its append presents it; "none".                                *)
(*   UseDedup a writer leaves out what it read.                              *)
(*   Repeats  the star recognises a batch by its writer's number: "first",   *)
(*            before it checks the fence; "late", after it; "never".         *)
(*                                                                           *)
(* docs/MODELS.md names the code beside each variable and action.            *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
  Writers, Updates,
  MaxRounds,    \* how many rounds are begun in all
  MaxCopies,    \* how often one batch is sent
  Fence,
  FreshTokens,  \* FALSE: a writer presents the same token in each of its rounds
  UseDedup,
  Repeats

ASSUME /\ Fence \in {"match", "token", "none"}
       /\ Repeats \in {"first", "late", "never"}
       /\ FreshTokens \in BOOLEAN /\ UseDedup \in BOOLEAN

VARIABLES
  log,      \* the durable stream: a sequence of updates
  token,    \* the fencing token installed; 0 is none
  applied,  \* by round: the tail before its batch was applied, or NotApplied
  writer,   \* by writer: its round, see Idle
  net,      \* appends on the wire; they outlive their sender
  rounds,   \* rounds begun so far
  ack,      \* by update: the position the client was told, counted from 1; 0 is none
  refused   \* rounds whose writer was told that its batch is in no stream
vars == <<log, token, applied, writer, net, rounds, ack, refused>>

NotApplied == 99

Idle == [phase  |-> "idle",  \* "idle", "ready" when it has read, "wait" when it has sent
         work   |-> {},      \* updates handed to it and not answered
         base   |-> 0,       \* the tail that it read
         seen   |-> {},      \* the updates that it read
         round  |-> 0,       \* its round: the number of its batch, and its fresh token
         batch  |-> <<>>,    \* what it sent
         copies |-> 0]       \* how often

Range(s) == {s[i] : i \in 1..Len(s)}
Place(s, x) == CHOOSE i \in 1..Len(s) : s[i] = x
\* All orders in which a writer may lay these updates into a batch.
Orders(S) == {s \in [1..Cardinality(S) -> S] : Range(s) = S}
TokenOf(w, round) == IF FreshTokens THEN round ELSE w

\* The answers when `batch` lies behind `base`; an update that was answered stays answered.
Told(us, base, batch) ==
  [u \in Updates |-> IF u \in us /\ ack[u] = 0 THEN base + Place(batch, u) ELSE ack[u]]
\* The wire when `w` waits for nothing any more.
Unheard(w, wire) == {[m EXCEPT !.live = @ /\ m.writer # w] : m \in wire}
Message(w, round, base, batch, copy) ==
  [writer |-> w, round |-> round, base |-> base, batch |-> batch, copy |-> copy, live |-> TRUE]

Init ==
  /\ log = <<>> /\ token = 0 /\ net = {} /\ rounds = 0 /\ refused = {}
  /\ applied = [r \in 1..MaxRounds |-> NotApplied]
  /\ writer = [w \in Writers |-> Idle]
  /\ ack = [u \in Updates |-> 0]

-----------------------------------------------------------------------------
(* The writer. *)

\* A round begins with what clients handed to the writer, for the first time or again: it installs
\* a token if tokens are the fence, then reads up to the tail. One step suffices: behind the fence
\* only this round's own append passes, and it is sent later.
Read(w, work) ==
  /\ writer[w].phase = "idle" /\ rounds < MaxRounds
  /\ work # {} /\ \A u \in work : ack[u] = 0
  /\ rounds' = rounds + 1
  /\ token' = IF Fence = "token" THEN TokenOf(w, rounds + 1) ELSE token
  /\ writer' = [writer EXCEPT ![w] = [Idle EXCEPT
       !.phase = "ready", !.work = work, !.round = rounds + 1,
       !.base = Len(log), !.seen = Range(log)]]
  /\ UNCHANGED <<log, applied, net, ack, refused>>

\* Answers what it read, sends the rest as one batch.
Send(w) ==
  /\ writer[w].phase = "ready"
  /\ LET me  == writer[w]
         old == IF UseDedup THEN me.work \cap me.seen ELSE {}
         new == me.work \ old
     IN /\ ack' = Told(old, 0, log)
        /\ IF new = {}
             THEN writer' = [writer EXCEPT ![w] = Idle] /\ UNCHANGED net
             ELSE \E batch \in Orders(new) :
                    /\ net' = net \cup {Message(w, me.round, me.base, batch, 1)}
                    /\ writer' = [writer EXCEPT ![w] = [@ EXCEPT
                         !.phase = "wait", !.work = new, !.seen = {},
                         !.batch = batch, !.copies = 1]]
  /\ UNCHANGED <<log, token, applied, rounds, refused>>

\* The session broke without an answer: the same batch under the same number.
Resend(w) ==
  /\ writer[w].phase = "wait" /\ writer[w].copies < MaxCopies
  /\ LET me == writer[w]
     IN net' = net \cup {Message(w, me.round, me.base, me.batch, me.copies + 1)}
  /\ writer' = [writer EXCEPT ![w].copies = @ + 1]
  /\ UNCHANGED <<log, token, applied, rounds, ack, refused>>

\* It crashes, or waits no longer. All that it knew is gone; its appends stay on the wire, and
\* clients hand their updates to it or to another again.
GiveUp(w) ==
  /\ writer[w].phase # "idle"
  /\ writer' = [writer EXCEPT ![w] = Idle]
  /\ net' = Unheard(w, net)
  /\ UNCHANGED <<log, token, applied, rounds, ack, refused>>

-----------------------------------------------------------------------------
(* The star. *)

\* What it makes of an append.
Verdict(m) ==
  LET known  == applied[m.round] # NotApplied
      passes == CASE Fence = "match" -> m.base = Len(log)
                  [] Fence = "token" -> TokenOf(m.writer, m.round) = token
                  [] OTHER           -> TRUE
  IN CASE known /\ Repeats = "first"          -> "repeat"
       [] ~passes                             -> "refuse"
       [] known /\ Repeats = "late" /\ passes -> "repeat"
       [] OTHER                               -> "admit"

\* An append lands; its answer is heard if its writer still waits and it is not lost.
Apply(m, lost) ==
  LET verdict == Verdict(m)
      heard   == m.live /\ ~lost
      base    == IF verdict = "repeat" THEN applied[m.round] ELSE Len(log)
      rest    == net \ {m}
  IN /\ net' = IF heard THEN Unheard(m.writer, rest) ELSE rest
     /\ log' = IF verdict = "admit" THEN log \o m.batch ELSE log
     /\ applied' = IF verdict = "admit" THEN [applied EXCEPT ![m.round] = base] ELSE applied
     /\ ack' = IF heard /\ verdict # "refuse" THEN Told(Range(m.batch), base, m.batch) ELSE ack
     /\ refused' = IF heard /\ verdict = "refuse" THEN refused \cup {m.round} ELSE refused
     /\ writer' = IF heard THEN [writer EXCEPT ![m.writer] = Idle] ELSE writer
     /\ UNCHANGED <<token, rounds>>

Next ==
  \/ \E w \in Writers :
       (\E work \in SUBSET Updates : Read(w, work)) \/ Send(w) \/ Resend(w) \/ GiveUp(w)
  \/ \E m \in net, lost \in BOOLEAN : (lost \/ m.live) /\ Apply(m, lost)
Spec == Init /\ [][Next]_vars

\* Nothing tells one writer from another, nor one update.
Symmetry == Permutations(Writers) \cup Permutations(Updates)

-----------------------------------------------------------------------------
(* What must hold. *)

AppliedOnce  == \A i, j \in 1..Len(log) : log[i] = log[j] => i = j
TrueAnswers  == \A u \in Updates : ack[u] # 0 => ack[u] <= Len(log) /\ log[ack[u]] = u
TrueRefusals == \A r \in refused : applied[r] = NotApplied

(* What must not hold, or the model does nothing: the canary. *)
NothingHappens == ~(refused # {} /\ \A u \in Updates : ack[u] # 0)
=============================================================================
