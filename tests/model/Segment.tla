------------------------------- MODULE Segment -------------------------------
(* One segment: its writer, its members, and whoever recovers it.             *)
(*                                                                            *)
(* A segment has one writer, a core of a star in one incarnation, and fixed   *)
(* members, each with a copy. An entry is answered when every member has it   *)
(* durable. The registry holds the segment's state, open or sealed, which is  *)
(* changed by compare-and-set. Anyone may recover the segment:                *)
(*                                                                            *)
(*   fence members  >  take the greatest length  >  repair to full copies     *)
(*                  >  seal                                                   *)
(*                                                                            *)
(* A deposed writer never learns of it: what it sent stays on its way for     *)
(* ever, its direct write to its own disk included.                           *)
(*                                                                            *)
(* One star alone is the same with Members = {one}: there the fence is the    *)
(* lock of the segment's file, and the seal the next segment's header.        *)
(*                                                                            *)
(* Four safeguards, each of which a configuration can take away:              *)
(*   UseFence  a fenced member takes no more writes for this segment;         *)
(*   UseCas    a segment that is sealed is never sealed again;                *)
(*   UseRepair a seal names members that have all of the sealed length;       *)
(*   AckAll    an answer waits for every member, not for a majority.          *)
(*                                                                            *)
(* docs/MODELS.md names the code beside each variable and action.             *)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
  Members,
  Spares,      \* nodes that repair may copy to
  Recoverers,
  MaxEntries,
  MaxLost,     \* how many nodes are lost for good
  UseFence, UseCas, UseRepair, AckAll

VARIABLES
  registry,    \* [state |-> "open" | "sealed", length, members]
  durable,     \* by node: entries durable there, a count as they land in order
  fenced,      \* by node: its durable promise to take no more
  alive,       \* by node: FALSE when machine and disk are lost for good
  writer,      \* [phase |-> "on" | "closed" | "dead", sent, confirmed by member]
  net,         \* writes on their way: <<member, entry>>
  got,         \* by recoverer and member: the length read behind the fence, or None
  told,        \* highest entry that a producer was answered
  seen,        \* highest entry that a reader was served
  first        \* the length of the first seal, or None; no program has this
vars == <<registry, durable, fenced, alive, writer, net, got, told, seen, first>>

Nodes == Members \cup Spares
None == 99
Min(S) == CHOOSE x \in S : \A y \in S : x <= y
Max(S) == CHOOSE x \in S : \A y \in S : x >= y

Init ==
  /\ registry = [state |-> "open", length |-> 0, members |-> Members]
  /\ durable = [n \in Nodes |-> 0]
  /\ fenced = [n \in Nodes |-> FALSE]
  /\ alive = [n \in Nodes |-> TRUE]
  /\ writer = [phase |-> "on", sent |-> 0, confirmed |-> [n \in Members |-> 0]]
  /\ net = {}
  /\ got = [r \in Recoverers |-> [n \in Members |-> None]]
  /\ told = 0 /\ seen = 0 /\ first = None

-----------------------------------------------------------------------------
(* The writer. *)

\* The next entry goes to every member.
Send ==
  /\ writer.phase = "on" /\ writer.sent < MaxEntries
  /\ writer' = [writer EXCEPT !.sent = @ + 1]
  /\ net' = net \cup {<<n, writer.sent + 1>> : n \in Members}
  /\ UNCHANGED <<registry, durable, fenced, alive, got, told, seen, first>>

\* The highest entry that enough members confirmed.
Confirmed ==
  IF AckAll
    THEN Min({writer.confirmed[n] : n \in Members})
    ELSE Max({e \in 0..MaxEntries :
           2 * Cardinality({n \in Members : writer.confirmed[n] >= e}) > Cardinality(Members)})

\* Answers leave.
Tell ==
  /\ writer.phase = "on" /\ Confirmed > told
  /\ told' = Confirmed
  /\ UNCHANGED <<registry, durable, fenced, alive, writer, net, got, seen, first>>

\* What the registry makes of a seal: a second one changes nothing.
Seal(length, members) ==
  IF UseCas /\ registry.state = "sealed"
    THEN UNCHANGED <<registry, first>>
    ELSE /\ registry' = [state |-> "sealed", length |-> length, members |-> members]
         /\ first' = IF first = None THEN length ELSE first

\* The segment is full, or a member is gone: the writer seals at what it has answered.
Roll ==
  /\ writer.phase = "on"
  /\ Seal(told, Members)
  /\ writer' = [writer EXCEPT !.phase = "closed"]
  /\ UNCHANGED <<durable, fenced, alive, net, got, told, seen>>

Crash ==
  /\ writer.phase = "on"
  /\ writer' = [writer EXCEPT !.phase = "dead"]
  /\ UNCHANGED <<registry, durable, fenced, alive, net, got, told, seen, first>>

-----------------------------------------------------------------------------
(* A member. *)

\* A write lands, whatever has become of its writer; the confirmation may be lost.
Write(n, e) ==
  /\ <<n, e>> \in net /\ alive[n] /\ e = durable[n] + 1
  /\ UseFence => ~fenced[n]
  /\ durable' = [durable EXCEPT ![n] = e]
  /\ net' = net \ {<<n, e>>}
  /\ writer' = [writer EXCEPT !.confirmed[n] = e] \/ UNCHANGED writer
  /\ UNCHANGED <<registry, fenced, alive, got, told, seen, first>>

\* Machine and disk are gone for good.
Lose(n) ==
  /\ alive[n] /\ Cardinality({m \in Nodes : ~alive[m]}) < MaxLost
  /\ alive' = [alive EXCEPT ![n] = FALSE]
  /\ UNCHANGED <<registry, durable, fenced, writer, net, got, told, seen, first>>

-----------------------------------------------------------------------------
(* Recovery, by several at once. *)

\* A member promises to take no more, and says how much it has.
Fence(r, n) ==
  /\ alive[n] /\ got[r][n] = None
  /\ fenced' = [fenced EXCEPT ![n] = TRUE]
  /\ got' = [got EXCEPT ![r][n] = durable[n]]
  /\ UNCHANGED <<registry, durable, alive, writer, net, told, seen, first>>

\* The length that a recoverer would seal: the greatest that it was told.
Length(r) ==
  LET lengths == {got[r][n] : n \in Members} \ {None}
  IN IF lengths = {} THEN None ELSE Max(lengths)

\* A fenced member or a spare gets what it lacks from a fenced member that has all.
Copy(r, n) ==
  /\ Length(r) # None
  /\ alive[n] /\ durable[n] < Length(r)
  /\ n \in Members => got[r][n] # None
  /\ \E m \in Members : alive[m] /\ got[r][m] # None /\ durable[m] >= Length(r)
  /\ durable' = [durable EXCEPT ![n] = Length(r)]
  /\ UNCHANGED <<registry, fenced, alive, writer, net, got, told, seen, first>>

\* Members that the seal may name: as many as before, each with all of the length.
Whole(r, members) ==
  IF UseRepair
    THEN \A n \in members :
           durable[n] >= Length(r) /\ (n \in Members => got[r][n] # None)
    ELSE members = Members

Recover(r) ==
  /\ Length(r) # None
  /\ UseCas => registry.state = "open"
  /\ \E members \in SUBSET Nodes :
       /\ Cardinality(members) = Cardinality(Members)
       /\ Whole(r, members)
       /\ Seal(Length(r), members)
  /\ UNCHANGED <<durable, fenced, alive, writer, net, got, told, seen>>

-----------------------------------------------------------------------------
(* A reader. *)

\* How far the stream goes for whoever asks now.
Tail == IF registry.state = "sealed" THEN registry.length ELSE told

Read ==
  /\ Tail > seen
  /\ seen' = Tail
  /\ UNCHANGED <<registry, durable, fenced, alive, writer, net, got, told, first>>

Next ==
  \/ Send \/ Tell \/ Roll \/ Crash \/ Read
  \/ \E n \in Nodes : Lose(n) \/ \E e \in 1..MaxEntries : Write(n, e)
  \/ \E r \in Recoverers :
       Recover(r) \/ (\E n \in Members : Fence(r, n)) \/ (\E n \in Nodes : Copy(r, n))
Spec == Init /\ [][Next]_vars

\* Nothing tells one member, spare or recoverer from another.
Symmetry == Permutations(Members) \cup Permutations(Spares) \cup Permutations(Recoverers)

-----------------------------------------------------------------------------
(* What must hold. *)

\* No answered entry is cut off.
AckedKept   == registry.state = "sealed" => told <= registry.length
\* What a reader saw stays.
ReadsStable == registry.state = "sealed" => seen <= registry.length
\* Every recoverer agrees with the first.
SealedOnce  == registry.state = "sealed" => registry.length = first
\* Some node that is left serves all of it.
Readable    == \E n \in registry.members : alive[n] /\ durable[n] >= Tail

(* What must not hold, or the model does nothing: the canary. *)

\* A dead writer's answered entries, recovered and read.
NothingHappens ==
  ~(writer.phase = "dead" /\ registry.state = "sealed" /\ told > 0 /\ seen = MaxEntries)
=============================================================================
