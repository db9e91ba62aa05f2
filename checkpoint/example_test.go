package checkpoint_test

import (
	"fmt"

	"github.com/waymarkhq/waymark/checkpoint"
)

// A stage that keeps a balance and says it after every deposit. Handle is called again with a message that was not committed:
// it says the same again, and adds nothing.
func ExampleRules_Apply() {
	rules := checkpoint.Rules[int, int]{} // the state and the outcome are a balance each
	var row *checkpoint.Row[int, int]
	handle := func(id string, offset int64, amount int) {
		res, err := rules.Apply(row, checkpoint.Message{ID: id, Topic: "deposits", Offset: offset}, func(balance int) (int, int, error) {
			return balance + amount, balance + amount, nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		if res.Decision.Emits() {
			row = res.Row
			fmt.Printf("%v: the balance is %d\n", res.Decision, res.Outcome)
			return
		}
		fmt.Printf("%v: nothing to say\n", res.Decision)
	}
	handle("monday", 0, 100)
	handle("tuesday", 1, 50)
	handle("monday", 0, 100) // the process was killed, and the partition is read again from what was committed
	handle("tuesday", 1, 50)
	handle("monday", 2, 100) // the client had no answer, and sends again
	fmt.Println("in the row:", row.State)
	// Output:
	// new: the balance is 100
	// new: the balance is 150
	// redelivery: the balance is 100
	// redelivery: the balance is 150
	// duplicate: nothing to say
	// in the row: 150
}
