package page_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/agent/statuspage/internal/page"
)

// noon is the time of the fixtures.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// well is a pod without any problem.
func well(i int) page.Pod {
	return page.Pod{
		UID: fmt.Sprintf("uid-%d", i), Namespace: "default", Name: fmt.Sprintf("web-%d", i), Source: "file",
		Phase: "Running", QOS: "BestEffort", IPs: []string{"10.88.0.7"}, Created: ago(3 * time.Hour),
		Containers: []page.Container{{
			Name: "server", Image: "registry.example/web:1.2", State: "running", Since: ago(3 * time.Hour), Ready: true,
			Probes: []page.Probe{{Kind: "readiness", Asks: "GET :8080/index.html", Period: 10 * time.Second, Runs: []page.Run{
				{At: ago(25 * time.Second), Took: 3 * time.Millisecond, Outcome: page.Failed, Output: "HTTP probe failed with statuscode: 503"},
				{At: ago(15 * time.Second), Took: 2 * time.Millisecond, Outcome: page.Passed},
				{At: ago(5 * time.Second), Took: 2 * time.Millisecond, Outcome: page.Passed},
			}}},
		}},
		Volumes: []page.Volume{{Name: "data", Kind: "empty-dir", State: "mounted", Path: "/var/lib/kubeparts/pods/uid/volumes/x/data", Used: new(uint64(5 << 20))}},
		Why:     "The pod is up to date; next check in 42s.",
		Plan:    page.Plan{At: ago(3 * time.Hour), Took: 300 * time.Millisecond, Steps: []string{"create a sandbox, attempt 0", "start container server: it has not run yet"}, Results: []page.Result{{Action: "CreatePodSandbox"}, {Action: "StartContainer server"}}, Looked: ago(20 * time.Second)},
		CPU:     new(uint64(12_000_000)), Memory: new(uint64(34 << 20)),
		Conditions: []page.Condition{{Type: "Ready", Status: "True", Since: ago(3 * time.Hour)}},
	}
}

// crashing is a pod in trouble.
func crashing() page.Pod {
	p := well(999)
	p.Name, p.UID = "crash", "uid-crash"
	p.Containers[0].State, p.Containers[0].Reason, p.Containers[0].Ready, p.Containers[0].Restarts = "waiting", "CrashLoopBackOff", false, 7
	p.Containers[0].Message = "back-off 5m0s restarting failed container=server pod=crash_default(uid-crash)"
	p.Containers[0].Last = "exited with code 3 (Error) 12 s ago, after 2 s"
	p.Containers = append([]page.Container{{Name: "prepare", Kind: "init", Image: "busybox", State: "exited", Ready: true}}, p.Containers...)
	p.Why = "The last 8 attempts failed: back-off 5m0s restarting failed container=server; retry in 4m1s."
	p.Plan = page.Plan{At: ago(12 * time.Second), Took: time.Millisecond, Steps: []string{"start container server, restart 8: it exited with code 3; not before 2026-11-21T12:04:00Z (back-off 5m0s)"},
		Results: []page.Result{{Action: "StartContainer server", Err: `failed to "StartContainer" for "server" with CrashLoopBackOff`}}}
	p.Volumes[0].State, p.Volumes[0].Err, p.Volumes[0].RetryAt = "uncertain", `configmap "conf" not found`, noon.Add(4*time.Second)
	return p
}

// signals of a node that is short of memory.
func signals() []page.Signal {
	var memory, disk []page.Point
	for i := range 180 {
		at := ago(time.Duration(180-i) * 10 * time.Second)
		memory = append(memory, page.Point{At: at, Available: int64(4<<30 - i*(20<<20) + i%7*(40<<20))})
		disk = append(disk, page.Point{At: at, Available: int64(60<<30 + i%9*(1<<30))})
	}
	return []page.Signal{
		{Name: "memory.available", Capacity: 8 << 30, Points: memory, Met: "Below 1Gi for 2 min.", Lines: []page.Line{{At: 100 << 20, Text: "100Mi"}, {At: 1 << 30, Text: "1Gi", Soft: true, Wait: 90 * time.Second}}},
		{Name: "nodefs.available", Capacity: 100 << 30, Points: disk, Lines: []page.Line{{At: 10 << 30, Text: "10%"}}},
		{Name: "nodefs.inodesFree", Unit: page.Count, Capacity: 6_553_600, Points: []page.Point{{At: noon, Available: 6_012_345}}, Lines: []page.Line{{At: 327_680, Text: "5%"}}},
		{Name: "pid.available", Unit: page.Count, Capacity: 32_768},
	}
}

// node has a pod of each kind, and many without problems.
func node(pods int) page.Node {
	n := page.Node{
		Name: "worker-1", Runtime: "containerd 2.4.2", At: noon, Started: ago(26 * time.Hour), Agent: "41 MiB of memory",
		Checks:     []page.Check{{Name: "runtime"}, {Name: "network", Err: "cni plugin not initialized"}},
		Conditions: []string{"MemoryPressure"},
		Signals:    signals(),
		Images: page.Images{Disk: "The disk of the images is 41 % full.", Goes: "Nothing would go now.", Bytes: 300 << 20, List: []page.Image{
			{Name: "registry.example/old:1.0", Bytes: 200 << 20, Class: "unused", Goes: true, Why: "unused for 3 weeks"},
			{Name: "registry.example/web:1.2", Bytes: 100 << 20, Class: "in use", Why: "container default/web-0[server]"},
		}},
		Events: []page.Event{
			{First: ago(time.Hour), Last: ago(12 * time.Second), Count: 41, Warning: true, Reason: "BackOff", Object: "default/crash[server]", UID: "uid-crash", Message: "Back-off restarting failed container server in pod crash_default(uid-crash)"},
			{First: ago(3 * time.Hour), Last: ago(3 * time.Hour), Count: 1, Reason: "Started", Object: "default/web-0[server]", UID: "uid-0", Message: "Container started"},
		},
	}
	for i := range pods {
		n.Pods = append(n.Pods, well(i))
	}
	if pods == 0 {
		return n
	}
	job := well(1000)
	job.Name, job.UID, job.Phase = "job", "uid-job", "Succeeded"
	job.Containers[0].State, job.Containers[0].Reason, job.Containers[0].Ready, job.Containers[0].Probes = "exited", "Completed", false, nil
	young := well(1001)
	young.Name, young.UID, young.Phase, young.Created = "young", "uid-young", "Pending", ago(2*time.Second)
	young.Containers[0].State, young.Containers[0].Reason, young.Containers[0].Ready, young.Containers[0].Probes[0].Runs = "waiting", "ContainerCreating", false, nil
	n.Pods = append(n.Pods, crashing(), job, young)
	return n
}

// hostile is a node whose pods try to attack the reader of the page.
func hostile() page.Node {
	return allOf(`"><script>alert(1)</script><img src=x onerror=alert(2)>'` + "\x1b[2J\u202Eevil\xff\x00")
}

// allOf is a node with one object of each kind, in which every text is evil.
func allOf(evil string) page.Node {
	n := node(1)
	p := crashing()
	p.Namespace, p.Name, p.UID, p.Source, p.Phase, p.Reason, p.Message, p.QOS, p.Why = evil, evil, evil, evil, evil, evil, evil, evil, evil
	p.IPs = []string{evil}
	p.Plan.Steps, p.Plan.Results[0] = []string{evil}, page.Result{Action: evil, Err: evil}
	p.Conditions[0] = page.Condition{Type: evil, Status: evil, Reason: evil, Message: evil}
	for i := range p.Containers {
		c := &p.Containers[i]
		c.Name, c.Image, c.State, c.Reason, c.Message, c.Last, c.Kind = evil, evil, evil, evil, evil, evil, evil
		for j := range c.Probes {
			c.Probes[j].Kind, c.Probes[j].Asks = evil, "javascript:"+evil
			c.Probes[j].Runs[0].Output = evil
		}
	}
	p.Volumes[0] = page.Volume{Name: evil, Kind: evil, State: evil, Path: evil, Doing: evil, Err: evil}
	n.Name, n.Runtime, n.Agent = evil, evil, evil
	n.Pods = append(n.Pods, p)
	n.Checks = append(n.Checks, page.Check{Name: evil, Err: evil})
	n.Problems, n.Conditions = []string{evil}, []string{evil}
	n.Signals = append(n.Signals, page.Signal{Name: evil, Capacity: -1, Met: evil, Points: []page.Point{{At: noon, Available: -5}}, Lines: []page.Line{{Text: evil}}})
	n.Images.Disk, n.Images.Goes = evil, evil
	n.Images.List = append(n.Images.List, page.Image{Name: evil, Class: evil, Why: evil})
	n.Events = append(n.Events, page.Event{Last: noon, Count: 2, Reason: evil, Object: evil, UID: evil, Message: evil})
	return n
}

// verbose is a full node on which everything that can be long is.
func verbose() page.Node {
	long := strings.Repeat("A message that does not come to an end. ", 250)
	n := node(0)
	for i := range 110 {
		p := crashing()
		p.Name, p.UID, p.Message, p.Why = fmt.Sprintf("pod-%d-%s", i, strings.Repeat("x", 240)), fmt.Sprint("uid-", i), long, long
		p.Plan.Steps, p.Plan.Results = []string{long, long}, []page.Result{{Action: long, Err: long}}
		for range 3 {
			c := p.Containers[1]
			c.Message, c.Last, c.Reason, c.Image = long, long, long, long
			c.Probes[0].Runs[2].Output = long
			p.Containers = append(p.Containers, c)
			p.Volumes = append(p.Volumes, page.Volume{Name: long, Kind: long, State: long, Err: long})
		}
		n.Pods = append(n.Pods, p)
	}
	for range 200 {
		n.Events = append(n.Events, page.Event{First: noon, Last: noon, Count: 3, Warning: true, Reason: long, Object: long, Message: long})
	}
	for range 1000 {
		n.Images.List = append(n.Images.List, page.Image{Name: long, Class: long, Why: long})
	}
	return n
}
