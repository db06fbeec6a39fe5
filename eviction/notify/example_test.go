package notify_test

import (
	"context"
	"fmt"
	"log"

	"github.com/kubeparts/kubeparts/eviction/notify"
)

// A Notifier calls low when the usage exceeds a level. Here Usage replaces the cgroup.
func ExampleNotifier_Run() {
	n, err := notify.New(notify.Config{Usage: func() (int64, error) { return 900 << 20, nil }})
	if err != nil {
		log.Fatal(err)
	}
	if err := n.Update([]int64{800 << 20}); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	err = n.Run(ctx, func() {
		fmt.Println("memory is low")
		stop()
	})
	fmt.Println(err)
	// Output:
	// memory is low
	// <nil>
}
