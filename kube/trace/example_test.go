package trace_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/kube/trace"
	clustertrace "github.com/kubeparts/kubeparts/sim/cluster/trace"
	"github.com/kubeparts/kubeparts/sim/virtualtime"
)

// Two pods of a CSV file run on fake nodes, in virtual time.
func Example() {
	err := virtualtime.Run(func(ctx context.Context) error {
		api := new(apitest.Server)
		nodes, err := fakenode.New(api.RESTConfig(), fakenode.Config{})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stopped := make(chan error, 1)
		go func() { stopped <- nodes.Run(ctx) }()

		pods, err := clustertrace.ReadPods(strings.NewReader("name,arrival_s,duration_s\nearly,60,7200\nlate,3600,1800\n"))
		if err != nil {
			return err
		}
		history, err := trace.OfPods(pods, "default", fakenode.Annotation)
		if err != nil {
			return err
		}
		player, err := trace.NewPlayer(api.RESTConfig(), trace.Config{})
		if err != nil {
			return err
		}
		if err := player.Play(ctx, history); err != nil {
			return err
		}
		for range 3 {
			time.Sleep(40 * time.Minute)
			fmt.Print(time.Now().Format(time.TimeOnly))
			for _, o := range api.List("pods") {
				pod := o.(*v1.Pod)
				fmt.Print("  ", pod.Name, " ", pod.Status.Phase)
			}
			fmt.Println()
		}
		cancel()
		return <-stopped
	})
	if err != nil {
		log.Fatal(err)
	}

	// Output:
	// 01:40:00  early Running  late Succeeded
	// 02:20:00  early Succeeded  late Succeeded
	// 03:00:00  early Succeeded  late Succeeded
}
