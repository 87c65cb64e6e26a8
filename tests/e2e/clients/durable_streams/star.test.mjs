// The suite as it is, at the star that STAR_URL names.
import { runConformanceTests } from "@durable-streams/server-conformance-tests"

runConformanceTests({ baseUrl: process.env.STAR_URL })
