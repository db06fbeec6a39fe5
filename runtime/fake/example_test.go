package fake_test

import (
	"fmt"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

func ExampleParseBehavior() {
	b, err := fake.ParseBehavior("exit=1@5s, crashes=3, ready=2s")
	fmt.Println(b.Exit.After, b.ReadyAfter, err)
	fmt.Println(b)

	_, err = fake.ParseBehavior("exit=1000")
	fmt.Println(err)
	// Output:
	// 5s 2s <nil>
	// exit=1@5s,crashes=3,ready=2s
	// fake: behavior "exit=1000": "exit=1000": "1000" is not a number from 0 to 255
}
