package trace_test

import (
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/sim/cluster/trace"
)

func ExampleReadPods() {
	pods, err := trace.ReadPods(strings.NewReader(`name,arrival_s,duration_s,memory_mib,used_memory_mib
web,0,,512,0:300 3600:700
report,90.5,600,2048,
`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pods[0].Name, pods[0].Memory(time.Minute)>>20, pods[0].Memory(2*time.Hour)>>20)
	fmt.Println(pods[1].Name, pods[1].Arrival, pods[1].RunTime, pods[1].RestartPolicy)

	// Output:
	// web 300 700
	// report 1m30.5s 10m0s Never
}
