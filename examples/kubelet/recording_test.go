package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/sim/record"
)

func TestARecordingBeginsWithTheConfigurationWithoutSecrets(t *testing.T) {
	dir := t.TempDir()
	o, err := parseArgs([]string{"--manifest-url=http://user:hunter2@a/pods?token=hunter2", "--manifest-url-header=X-Key:hunter2", "--max-pods=7", "--record-dir=" + dir})
	require.NoError(t, err)
	cfg := kubelet.Config{NodeName: "edge-1"}
	stop, err := o.record(&cfg)
	require.NoError(t, err)
	assert.Len(t, cfg.Adjust, 3, "the runtime, volumes and the agent")
	stop()
	files, err := record.Files(dir)
	require.NoError(t, err)
	for f, err := range record.ReadFiles(files...) {
		require.NoError(t, err)
		if h := f.Header; h != nil {
			assert.Equal(t, "edge-1", h.Node)
			assert.Equal(t, kubelet.Version, h.Versions["kubelet"])
			assert.Contains(t, string(h.Configuration), `"maxPods":7`)
			assert.Contains(t, string(h.Configuration), `"staticPodURL":"http://a/pods"`)
			assert.False(t, strings.Contains(string(h.Configuration), "hunter2"), "%s", h.Configuration)
		}
	}
}

func TestWithoutTheFlagNothingIsRecorded(t *testing.T) {
	var cfg kubelet.Config
	stop, err := new(options).record(&cfg)
	require.NoError(t, err)
	stop()
	assert.Empty(t, cfg.Adjust)
}
