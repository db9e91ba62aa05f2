// Package stagetest tests stages without Kafka: it gives a history of messages to a stage, once undisturbed and then again
// with a crash at every point between a message's delivery and its commit, and fails the test where the outcome differs.
//
//	func TestCounter(t *testing.T) {
//		run := stagetest.New(t,
//			stagetest.Input(words, count),
//			stagetest.Output(totals),
//			stagetest.Table(codec, merge),
//		).Run(
//			stagetest.Message(words, "river", "Rhine"),
//			stagetest.Message(words, "river", "Elbe"),
//		)
//		got := stagetest.Sent(run, totals)
//		…
//	}
//
// What a Run asserts, beside what the test itself looks at:
//
//   - The handler gives equal results when it is called twice with the same message and row, and changes neither.
//   - A crash may come before or after each output, the local row, the table's record, and each of the words that follow;
//     what is not committed is delivered again, to rows that were kept, and so are ahead, or that were rebuilt from the
//     table. Then the same records must have been sent, byte for byte and per key in the same order; more of them are only
//     repetitions. The rows of both the local store and the table must be those of the undisturbed run.
//   - The merge of rows is commutative, associative and idempotent for all rows met, changes none of them, and lets a new row
//     win against the row that it replaces.
//
// Records are compared with their bytes, so the clocks and sources of randomness of a stage have to be injected and fixed.
// Rows are compared as their codec decodes them.
//
// What the kit does not do: it has one goroutine, retries nothing in place, and never loses the partition. An error of
// class transient goes to OnFailure at once; an outage fails the test.
package stagetest
