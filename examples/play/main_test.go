package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// The pods of an hour run within a minute.
func TestACSVFileIsPlayed(t *testing.T) {
	var csv strings.Builder
	csv.WriteString("arrival_s,duration_s\n")
	for i := range 60 {
		fmt.Fprintf(&csv, "%d,600\n", i*60)
	}
	o := options{trace: write(t, "pods.csv", csv.String()), namespace: "prod", prefix: "virtual-", speed: 60}
	history, err := read(o)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		fakenode.Start(t.Context(), t, api.RESTConfig(), fakenode.Config{})
		var out bytes.Buffer
		config := api.RESTConfig()
		config.QPS = -1
		require.NoError(t, play(t.Context(), config, history, o, &out))
		assert.True(t, strings.HasSuffix(out.String(), "\n60 events, 59m0s of the trace in 59s, at most 0s late\n"), out.String())
		phases := map[v1.PodPhase]int{}
		for i := range 60 {
			phases[api.Pod("virtual-prod", fmt.Sprintf("pod-%d", i)).Status.Phase]++
		}
		assert.InDelta(t, 10, phases[v1.PodRunning]+phases[v1.PodPending], 3, "%v: a pod runs for 10 s", phases)
		time.Sleep(time.Minute)
		for i := range 60 {
			assert.Equal(t, v1.PodSucceeded, api.Pod("virtual-prod", fmt.Sprintf("pod-%d", i)).Status.Phase)
		}
	})
}

func TestAFileOfSimKubeIsRead(t *testing.T) {
	// {"version": 2, "events": [{"ts": 7, "applied_objs": [Pod], "deleted_objs": []}], "pod_lifecycles": {["v1.Pod", "ns/p"]: {1: [{"Finished": [0, 60]}]}}}
	pod := "\x84\xaaapiVersion\xa2v1\xa4kind\xa3Pod\xa8metadata\x82\xa4name\xa1p\xa9namespace\xa2ns\xa4spec\x81\xadrestartPolicy\xa5Never"
	text := "\x83\xa7version\x02\xa6events\x91\x83\xa2ts\x07\xacapplied_objs\x91" + pod + "\xacdeleted_objs\x90" +
		"\xaepod_lifecycles\x81\x92\xa6v1.Pod\xa4ns/p\x81\x01\x91\x81\xa8Finished\x92\x00\x3c"
	history, err := read(options{trace: write(t, "a.sktrace", text), speed: 2})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{fakenode.Annotation: "exit=0@30s"}, history.Events[0].Applied[0].GetAnnotations())
}

func TestInvalidFlagsAreErrors(t *testing.T) {
	for want, o := range map[string]options{
		"--trace is required":       {speed: 1},
		"--speed=0 is not positive": {trace: "x"},
		"no-file":                   {trace: "no-file", speed: 1},
		"a.sktrace: trace: offset 1: version 0 is not": {trace: write(t, "a.sktrace", "\x80"), speed: 1},
		"unknown column \"a\"":                         {trace: write(t, "b.csv", "a\n"), speed: 1},
		"column creation_time is missing":              {trace: write(t, "c.csv", "name,cpu_milli,memory_mib\n"), speed: 1, alibaba: true},
		"--kubeconfig: ":                               {trace: write(t, "d.csv", "arrival_s\n"), speed: 1, kubeconfig: "nowhere"},
	} {
		assert.ErrorContains(t, start(t.Context(), o, nil), want)
	}
}
