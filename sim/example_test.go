package sim_test

import (
	"fmt"
	"log"

	"github.com/kubeparts/kubeparts/sim"
)

// A schedule is text, and what it says of a pod is a pod.
func ExampleParse() {
	schedule, err := sim.Parse(`
		# A pod whose deletion is asked for while the runtime has a bad day.
		1s   add web grace=5 init:setup=exit=0@2s main:server=ignoreTERM
		9.5s fault KillPod kind=lost percent=50 for=30s
		10s  delete web
		11s  kill calls=3 when=after down=4s
	`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(schedule)
	pod := schedule[0].Shape.Pod("web", "uid-1")
	fmt.Println(pod.Spec.Containers[0].Image, pod.Spec.RestartPolicy)
	// Output:
	// 1s add web grace=5 init:setup=exit=0@2s main:server=ignoreTERM
	// 9.5s fault KillPod kind=lost percent=50 for=30s
	// 10s delete web
	// 11s kill calls=3 when=after down=4s
	// sim.test/does:ignoreTERM Always
}
