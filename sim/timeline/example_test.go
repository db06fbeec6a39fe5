package timeline_test

import (
	"log"
	"os"
	"time"

	"github.com/kubeparts/kubeparts/sim/timeline"
)

// A job fails once, waits, and succeeds.
func ExampleTimeline_WriteChart() {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	after := func(d time.Duration) time.Time { return start.Add(d) }
	pod, main := "default/job", "main"
	line := timeline.Timeline{Marks: []timeline.Mark{
		{At: start, Pod: pod, Kind: timeline.Phase, Text: "Running"},
		{At: start, Pod: pod, Container: main, Kind: timeline.Running},
		{At: after(4 * time.Second), Pod: pod, Container: main, Kind: timeline.Exited, Text: "exit code 1"},
		{At: after(4 * time.Second), Pod: pod, Container: main, Kind: timeline.BackOff, Text: "CrashLoopBackOff"},
		{At: after(14 * time.Second), Pod: pod, Container: main, Kind: timeline.Running, Text: "restart 1"},
		{At: after(20 * time.Second), Pod: pod, Container: main, Kind: timeline.Succeeded},
		{At: after(20 * time.Second), Pod: pod, Kind: timeline.Phase, Text: "Succeeded"},
	}, Until: after(30 * time.Second)}
	if err := line.WriteChart(os.Stdout, 70); err != nil {
		log.Fatal(err)
	}
	// Output:
	// default/job             Running ......................Succeeded ......
	//   main                  ------x~~~~~~~~~~~~~~---------o
	//                         +--------------+--------------+--------------+
	//                         0s             10s            20s            30s
	//                         - runs  = ready  . waits  ~ backs off  x failed  o succeeded
	//                         K killed  ! probe failed  F fault  A agent  | deleted  * note
}
