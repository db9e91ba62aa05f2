package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/waymarkhq/waymark/kafka"
)

var accounts = []string{"alice", "bob", "carol", "dave", "erin"}

// script is what the clients of the example send: the same for the same seed, so that a second run sends everything again, as
// clients do that never got their answers.
func script(seed uint64, n int) []kafka.Record {
	rng := rand.New(rand.NewPCG(seed, seed))
	var records []kafka.Record
	send := func(account string, p Payment) {
		value, err := json.Marshal(p)
		if err != nil {
			panic(err) // it has strings and numbers only
		}
		records = append(records, kafka.Record{Topic: topics().Payments.Name, Key: []byte(account), Value: value})
	}
	for i, account := range accounts {
		send(account, Payment{ID: fmt.Sprintf("opening-%d", i), Kind: kindDeposit, Amount: 1_000_00})
	}
	holds := map[string][]string{}
	for i := range n {
		account := accounts[rng.IntN(len(accounts))]
		p := Payment{ID: fmt.Sprintf("p-%04d", i), Kind: kindPayment, Amount: int64(1 + rng.IntN(400_00))}
		switch roll := rng.IntN(100); {
		case roll < 4: // a client with a mistake
			records = append(records, kafka.Record{Topic: topics().Payments.Name, Key: []byte(account), Value: fmt.Appendf(nil, `{"id":%q,"amuont":12}`, p.ID)})
			continue
		case roll < 6: // somebody else's record
			records = append(records, kafka.Record{Topic: topics().Payments.Name, Key: []byte(account), Value: []byte("hello?"),
				Headers: []kafka.Header{{Key: []byte("source"), Value: []byte("unknown")}}})
			continue
		case roll < 10:
			p.Kind, p.Amount = kindDeposit, 6_000_00
		case roll < 25:
			p.Kind = kindDeposit
		case roll < 28:
			p.Amount = largeAmount + int64(rng.IntN(1_000_00))
		case roll < 45:
			p.Kind = kindHold
			holds[account] = append(holds[account], p.ID)
		case roll < 55 && len(holds[account]) > 0:
			last := len(holds[account]) - 1
			p.Kind, p.Amount, p.Hold = kindCapture, 0, holds[account][last]
			holds[account] = holds[account][:last]
		}
		send(account, p)
		if rng.IntN(10) == 0 { // the answer was lost, and the client sends again
			send(account, p)
		}
	}
	return records
}
