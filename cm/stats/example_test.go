package stats_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/kubeparts/kubeparts/cm/stats"
)

func ExampleCollector_Summary() {
	machine := fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 4096 kB\nMemFree: 1024 kB\nInactive(file): 512 kB\n")}}
	c, err := stats.New(stats.Config{NodeName: "n1", Root: machine})
	if err != nil {
		log.Fatal(err)
	}
	summary, err := c.Summary(context.Background(), false)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(summary.Node.NodeName, *summary.Node.Memory.WorkingSetBytes>>10, "KiB")
	// Output: n1 2560 KiB
}
