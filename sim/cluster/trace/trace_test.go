package trace_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/sim/cluster"
	"github.com/kubeparts/kubeparts/sim/cluster/trace"
)

// file returns a file of testdata.
func file(t testing.TB, name string) *bytes.Reader {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return bytes.NewReader(text)
}

func TestPodsAreRead(t *testing.T) {
	pods, err := trace.ReadPods(file(t, "pods.csv"))
	require.NoError(t, err)
	require.Len(t, pods, 4)
	web := pods[0]
	for age, want := range map[time.Duration]int64{0: 300, time.Minute: 300, 30 * time.Minute: 900, 2 * time.Hour: 1500} {
		assert.Equal(t, want<<20, web.Memory(age), age)
	}
	web.Memory = nil
	assert.Equal(t, cluster.Pod{
		Name: "web-0", Requests: cluster.Resources{CPU: 500, Memory: 512 << 20}, Priority: 100, Image: "web", Recreate: true,
	}, web)
	assert.Equal(t, 500*time.Millisecond, pods[1].Arrival)
	assert.EqualValues(t, 1<<30, pods[1].Limits.Memory)
	assert.EqualValues(t, 400<<20, pods[1].Memory(time.Hour))
	assert.Equal(t, v1.RestartPolicyNever, pods[2].RestartPolicy)
	assert.Equal(t, 120*time.Second+250*time.Millisecond, pods[3].Arrival)
	assert.Nil(t, pods[3].Memory)
	runs(t, pods, []cluster.Node{{Capacity: cluster.Resources{CPU: 8000, Memory: 16 << 30}}})
}

func TestATraceOfAlibabaIsRead(t *testing.T) {
	pods, err := trace.ReadAlibabaPods(file(t, "alibaba_pods.csv"))
	require.NoError(t, err)
	nodes, err := trace.ReadAlibabaNodes(file(t, "alibaba_nodes.csv"))
	require.NoError(t, err)
	require.Len(t, pods, 4)
	assert.Equal(t, cluster.Pod{
		Name: "example-pod-2", Arrival: 160 * time.Second, RunTime: 5 * time.Minute, ExitCode: 1, RestartPolicy: v1.RestartPolicyNever,
		Requests: cluster.Resources{CPU: 4000, Memory: 8 << 30},
		Labels:   map[string]string{"qos": "BE", "num_gpu": "1", "gpu_milli": "250", "gpu_spec": "V100M16|V100M32"},
	}, pods[1])
	assert.Equal(t, time.Second, pods[2].RunTime)
	assert.Equal(t, []time.Duration{0, 2000 * time.Second}, []time.Duration{pods[3].Arrival, pods[3].RunTime})
	assert.Equal(t, []cluster.Node{
		{Name: "example-node-1", Capacity: cluster.Resources{CPU: 32000, Memory: 128 << 30}, Labels: map[string]string{"gpu": "0"}},
		{Name: "example-node-2", Capacity: cluster.Resources{CPU: 96000, Memory: 384 << 30}, Labels: map[string]string{"gpu": "8", "model": "V100M32"}},
	}, nodes)
	runs(t, pods, nodes)
}

// runs simulates what was read, and checks that every pod was scheduled.
func runs(t testing.TB, pods []cluster.Pod, nodes []cluster.Node) {
	t.Helper()
	c, err := cluster.New(cluster.Config{Nodes: nodes, Pods: pods, Duration: 2 * time.Hour})
	require.NoError(t, err)
	report, err := c.Run(t.Context())
	require.NoError(t, err)
	for _, p := range report.Pods {
		assert.NotEmpty(t, p.Node, p.Name)
	}
}

func TestErrorsNameLineAndColumn(t *testing.T) {
	for text, want := range map[string]string{
		"":                                         "trace: header: file is empty",
		"name\n":                                   "trace: line 1: column arrival_s is missing",
		"arrival_s,colour\n":                       `trace: line 1: unknown column "colour"`,
		"arrival_s,name,name\n":                    "trace: line 1: column name occurs twice",
		"arrival_s\n1\n-1\n":                       `trace: line 3: column arrival_s: "-1" is not a number of seconds from 0 to 1073741824`,
		"arrival_s,name\n,a\n":                     "trace: line 2: column arrival_s: is empty",
		"arrival_s,name\n1\n":                      "trace: record on line 2: wrong number of fields",
		"arrival_s\n\"1\n":                         "trace: parse error on line 2, column 4: extraneous or missing \" in quoted-field",
		"arrival_s\n1e3\n":                         `trace: line 2: column arrival_s: "1e3" is not a number of seconds from 0 to 1073741824`,
		"arrival_s,memory_mib\n1,1.5\n":            `trace: line 2: column memory_mib: "1.5" is not an integer from 0 to 1073741824`,
		"arrival_s,cpu_milli\n1,9e9\n":             `trace: line 2: column cpu_milli: "9e9" is not an integer from 0 to 1099511627776`,
		"arrival_s,exit_code\n1,256\n":             `trace: line 2: column exit_code: "256" is not an integer from 0 to 255`,
		"arrival_s,restart_policy\n1,x\n":          `trace: line 2: column restart_policy: "x" is not Always, OnFailure or Never`,
		"arrival_s,recreate\n1,x\n":                `trace: line 2: column recreate: "x" is not true or false`,
		"arrival_s,used_memory_mib\n1,0:x\n":       `trace: line 2: column used_memory_mib: "0:x" is not seconds:MiB`,
		"arrival_s,used_disk_mib\n1,5:1 5:2":       "trace: line 2: column used_disk_mib: age 5 is not after the one before",
		"arrival_s\n" + strings.Repeat("1", 2<<20): "trace: line is longer than 1048576 bytes",
	} {
		_, err := trace.ReadPods(strings.NewReader(text))
		assert.EqualError(t, err, want, "%.60q", text)
	}
	header := "name,cpu_milli,memory_mib,creation_time,deletion_time,scheduled_time,pod_phase\n"
	for text, want := range map[string]string{
		"a,1,1,9,10,8,":   "trace: line 2: column scheduled_time: is before creation_time",
		"a,1,1,9,8,9,":    "trace: line 2: column deletion_time: is before scheduled_time or creation_time",
		"a,1,1,9,9,9,Odd": `trace: line 2: column pod_phase: unknown phase "Odd"`,
		"a,x,1,9,9,9,":    `trace: line 2: column cpu_milli: "x" is not an integer from 0 to 1099511627776`,
	} {
		_, err := trace.ReadAlibabaPods(strings.NewReader(header + text))
		assert.EqualError(t, err, want, text)
	}
	_, err := trace.ReadAlibabaNodes(strings.NewReader("sn,cpu_milli,memory_mib\na,1,\n"))
	assert.EqualError(t, err, "trace: line 2: column memory_mib or cpu_milli is empty or zero")
	failed := errors.New("disk error")
	_, err = trace.ReadPods(failing{failed})
	assert.ErrorIs(t, err, failed)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Whatever a file has, reading it returns an error or pods that a cluster accepts, unless
// they have the same name or requests above their limits.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"pods.csv", "alibaba_pods.csv", "alibaba_nodes.csv"} {
		text, err := os.ReadFile("testdata/" + name)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		pods, err := trace.ReadPods(bytes.NewReader(text))
		more, alibabaErr := trace.ReadAlibabaPods(bytes.NewReader(text))
		nodes, nodesErr := trace.ReadAlibabaNodes(bytes.NewReader(text))
		for _, err := range []error{err, alibabaErr, nodesErr} {
			if err != nil && !strings.HasPrefix(err.Error(), "trace: ") {
				t.Errorf("%v", err)
			}
		}
		pods = append(pods, more...)
		for i := range pods {
			pods[i].Name = fmt.Sprint(i)
			pods[i].Limits = cluster.Resources{}
			if u := pods[i].Memory; u != nil {
				u(time.Hour)
			}
		}
		for i := range nodes {
			nodes[i].Name = fmt.Sprint(i)
		}
		if len(nodes) == 0 {
			nodes = make([]cluster.Node, 1)
		}
		if _, err := cluster.New(cluster.Config{Nodes: nodes, Pods: pods, Duration: time.Hour}); err != nil {
			t.Error(err)
		}
	})
}

// A RunTime of zero would be a container that never exits.
func TestADurationOfZeroIsNotEndless(t *testing.T) {
	pods, err := trace.ReadPods(strings.NewReader("arrival_s,duration_s\n0,0\n0,\n"))
	require.NoError(t, err)
	assert.Equal(t, time.Millisecond, pods[0].RunTime)
	assert.Equal(t, v1.RestartPolicyNever, pods[0].RestartPolicy)
	assert.Zero(t, pods[1].RunTime)
}
