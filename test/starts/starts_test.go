//go:build unix

package starts

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/isolate"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// In namespaces of its own the program of the tests runs the subcommand.
func TestMain(m *testing.M) {
	if isolate.Isolated() {
		os.Exit(cli.Run([]cli.Command{Command()}, os.Args[1:], os.Stdout))
	}
	os.Exit(m.Run())
}

func TestFlags(t *testing.T) {
	kubelet := filepath.Join(t.TempDir(), "kubelet")
	require.NoError(t, os.WriteFile(kubelet, nil, 0o755))
	o, err := parseFlags([]string{"--in-flight", "1, 50", "--alone=0", "--kubelet", kubelet}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, subjects, o.only)
	assert.Equal(t, []phase{
		{name: "fill", pods: 110, limit: 110},
		{name: "1 in flight", pods: 20, limit: 1, remove: true},
		{name: "50 in flight", pods: 100, limit: 50, remove: true},
	}, o.phases())
	again, err := parseFlags(o.args(kubeletName)[1:], io.Discard)
	require.NoError(t, err)
	o.only = []string{kubeletName}
	assert.Equal(t, o, again, "the flags of the program in namespaces of its own")
	for args, message := range map[string]string{
		"--in-flight=0":  `--in-flight="0": "0" is not a number from 1 to 500`,
		"--only=docker":  `"docker" is not one of`,
		"--fill=1001":    "from 0 to 1000",
		"--latency=-1ms": "must not be negative",
		"--kubelet=none": "builds it",
	} {
		_, err := parseFlags([]string{args}, io.Discard)
		assert.ErrorContains(t, err, message, args)
	}
}

// The share of the node is the time in which no CRI call for the pod is in progress.
func TestTheShareOfTheNode(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1, 0).Add(time.Duration(ms) * time.Millisecond) }
	m := milestones{
		bound: at(0), admitted: at(7), running: at(200), reported: at(230), writes: 2,
		calls: []call{
			{"StartContainer", at(180), at(200)},
			{"RunPodSandbox", at(10), at(110)},
			{"PodSandboxStatus", at(100), at(120)}, // overlaps
			{"CreateContainer", at(150), at(170)},
			{"PodSandboxStatus", at(190), at(250)}, // ends later
		},
	}
	r := newResult("alone", []milestones{m, {bound: at(0)}})
	assert.Equal(t, map[string][]float64{
		"bound to first status in a watch": {7},
		"bound to call of RunPodSandbox":   {10},
		"bound to sandbox":                 {110},
		"bound to container":               {170},
		"bound to running in the runtime":  {200},
		"of this, CRI calls for the pod":   {150},
		"of this, the share of the node":   {50},
		"running to its status in a watch": {30},
		"statuses in a watch until then":   {2},
	}, r.Figures)
}

func TestTables(t *testing.T) {
	var pods []milestones
	begin := time.Unix(1, 0)
	for i := range 100 {
		pods = append(pods, milestones{bound: begin, running: begin.Add(time.Duration(i) * time.Millisecond)})
	}
	r := newResult("fill", pods)
	r.Took, r.Used = 2*time.Second, cost{time.Second, 900, 400}
	text := tables([]string{"a", "b"}, map[string][]result{"a": {r}, "b": {{Phase: "fill", Pods: 100}}})
	assert.Contains(t, text, "| fill: 100 pods; median (minimum to maximum; p99) | a | b |\n|---|---|---|\n")
	assert.Contains(t, text, "| bound to running in the runtime | 49 ms (0 to 99; 98) | – |\n")
	assert.Contains(t, text, "| all pods | 2.00 s | 0.00 s |\n| CPU per pod | 10.0 ms | – |\n| CRI calls per pod | 9.0 | – |\n| API requests per pod | 4.0 | – |\n")
}

// A short measurement of the complete node beside the lower bound.
func TestIntegrationStartsAreMeasured(t *testing.T) {
	lab.Need(t, "containerd")
	agent := filepath.Join(t.TempDir(), "kubelet")
	require.NoError(t, labenv.Build(t.Context(), agent))
	both := []string{agentName, bareName}
	for name, o := range map[string]options{
		"a runtime in memory": {probes: 1, fill: 5, inFlight: []int{3}, latency: time.Millisecond, only: both},
		"containerd":          {probes: 1, fill: 5, inFlight: []int{3}, only: both, containerd: true},
		"profiles":            {fill: 5, latency: time.Millisecond, only: both, profiles: t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			o.agent = agent
			require.Zero(t, run(t.Context(), o, &out), "%s", &out)
			for _, p := range o.phases() {
				assert.Contains(t, out.String(), fmt.Sprintf("| %s: %d pods;", p.name, p.pods))
			}
			assert.Regexp(t, `bound to running in the runtime \| [0-9]+ ms \(.*\) \| [0-9]+ ms \(`, out.String())
			assert.Regexp(t, `statuses in a watch until then \| [2-4] \(`, out.String())
			if o.profiles != "" {
				assert.FileExists(t, filepath.Join(o.profiles, "kubeparts-fill-cpu.pprof"))
				assert.FileExists(t, filepath.Join(o.profiles, "kubeparts-fill-allocs.pprof"))
			}
			t.Logf("%s", &out)
		})
	}
}
