//go:build unix

package footprint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cgroupdir"
)

// contenders are the pods of --contention by name: their requests, and whether these are limits as well. All are
// admitted where there are two CPUs.
var contenders = []struct {
	name, cpu  string
	guaranteed bool
}{
	{"guaranteed-400m", "400m", true},
	{"burstable-400m", "400m", false},
	{"burstable-100m", "100m", false},
	{"besteffort", "", false},
}

// signal is the file among those of started pods that all wait for, so that none competes with the start of others.
const signal = "go"

// contend measures how the pods share the CPUs with each program, prints it, and returns the exit code.
func contend(ctx context.Context, o options, out io.Writer, say func(string, ...any)) int {
	shares := map[string]map[string]float64{}
	for _, subject := range o.only {
		binary := map[string]string{agentName: o.agent, kubeletName: o.kubelet}[subject]
		if binary == "" {
			continue // the bare client creates no cgroups
		}
		say("%s: %d pods compete for %d CPUs for %v", subject, len(contenders), runtime.NumCPU(), o.window)
		var log bytes.Buffer
		err := lab.Program(ctx, &log, func(t testing.TB) (err error) {
			shares[subject], err = contention(ctx, t, o, subject, binary)
			return err
		})
		if err != nil {
			say("failed to measure %s: %v\n%s", subject, err, log.Bytes())
			return 1
		}
	}
	fmt.Fprintf(out, "\n| pod |")
	for _, subject := range o.only {
		if shares[subject] != nil {
			fmt.Fprintf(out, " %s |", subject)
		}
	}
	fmt.Fprintf(out, "\n|---%s\n", strings.Repeat("|---", len(shares))+"|")
	for _, c := range contenders {
		fmt.Fprintf(out, "| %s |", c.name)
		for _, subject := range o.only {
			if shares[subject] != nil {
				fmt.Fprintf(out, " %.1f %% |", 100*shares[subject][c.name])
			}
		}
		fmt.Fprintln(out)
	}
	return 0
}

// contention runs the pods on one program, and returns the part of the CPU time that each has had.
func contention(ctx context.Context, t testing.TB, o options, subject, binary string) (map[string]float64, error) {
	w := newWorld(t, false)
	for _, c := range contenders {
		data, err := json.Marshal(w.contender(c.name, c.cpu, c.guaranteed))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(w.Path("manifests", c.name+".json"), data, 0o600); err != nil {
			return nil, err
		}
	}
	n, err := w.start(subject, binary, o.logs)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { w.Must("stop", n.Stop(time.Minute)) })
	alive, cancel := n.alive(ctx, lab.Limit(patience)+o.settle+o.window)
	defer cancel()
	if _, err := awaitStarts(alive, w.started, len(contenders)); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(w.started, signal), nil, 0o644); err != nil {
		return nil, err
	}
	if err := pause(alive, o.settle); err != nil {
		return nil, err
	}
	before, err := w.cpuTimes()
	if err != nil {
		return nil, err
	}
	if err := pause(alive, o.window); err != nil {
		return nil, err
	}
	after, err := w.cpuTimes()
	if err != nil {
		return nil, err
	}
	var total float64
	for name := range after {
		after[name] -= before[name]
		total += after[name]
	}
	for name := range after {
		after[name] /= total
	}
	return after, nil
}

// contender returns a pod with as many busy loops as there are CPUs, which begin with the signal.
func (w *world) contender(name, cpu string, guaranteed bool) *v1.Pod {
	pod := newPod(name, "", w.started)
	c := &pod.Spec.Containers[0]
	c.Command = []string{"sh", "-c", fmt.Sprintf(`echo > %[1]s/%[2]s
until [ -e %[1]s/%[3]s ]; do sleep 1; done
for i in $(seq %[4]d); do while :; do :; done & done
wait`, startedDir, name, signal, runtime.NumCPU())}
	if cpu == "" {
		return pod
	}
	c.Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("64Mi")}
	if guaranteed {
		c.Resources.Limits = c.Resources.Requests
	}
	return pod
}

// cpuTimes returns the CPU time of each contender's container in seconds, from its cgroup.
func (w *world) cpuTimes() (map[string]float64, error) {
	times := map[string]float64{}
	for _, c := range contenders {
		pid := findProcess(markVar + "=" + filepath.Join(w.started, c.name))
		if pid == 0 {
			return nil, fmt.Errorf("%s: no process has its variable %s", c.name, markVar)
		}
		var err error
		if times[c.name], err = cgroupCPU(pid); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return times, nil
}

// cgroupCPU returns the CPU time of the cgroup of a process in seconds.
func cgroupCPU(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return 0, err
	}
	file, perSecond := cpuFile(string(text))
	if file == "" {
		return 0, fmt.Errorf("no CPU cgroup in %q", text)
	}
	if text, err = os.ReadFile(file); err != nil {
		return 0, err
	}
	// usage_usec is the first line of cpu.stat, cpuacct.usage has only a number.
	first, _, _ := strings.Cut(string(text), "\n")
	used, err := strconv.ParseFloat(strings.TrimPrefix(first, "usage_usec "), 64)
	return used / perSecond, err
}

// cpuFile returns the file of the CPU time of a cgroup, given /proc/PID/cgroup, and its unit.
func cpuFile(cgroups string) (file string, perSecond float64) {
	for line := range strings.Lines(cgroups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(fields) < 3:
		case slices.Contains(strings.Split(fields[1], ","), "cpuacct"):
			return filepath.Join("/sys/fs/cgroup", "cpuacct", fields[2], "cpuacct.usage"), 1e9
		case fields[1] == "" && cgroupdir.V2():
			return filepath.Join("/sys/fs/cgroup", fields[2], "cpu.stat"), 1e6
		}
	}
	return "", 0
}
