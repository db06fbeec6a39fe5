package kubelet

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/component-helpers/nodedeclaredfeatures/features"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

func counts(t *testing.T) *counters {
	t.Helper()
	c, err := newCounters(options{nodeName: "n1"})
	require.NoError(t, err)
	return c
}

func TestFlagsOfAClusterAreChecked(t *testing.T) {
	for want, args := range map[string][]string{
		"--kubeconfig or --in-cluster is missing": {"--manifests=x", "--remember-pods"},
		"does not go with --kubeconfig":           {"--in-cluster", "--kubeconfig=x"},
		"--manifests is missing":                  {},
	} {
		_, err := parseFlags(args)
		assert.ErrorContains(t, err, want)
	}
	opts, err := parseFlags([]string{"--kubeconfig=x", "--root=" + t.TempDir()})
	require.NoError(t, err)
	assert.False(t, opts.stopPods, "the API server decides what is stopped")

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`), 0o600))
	for want, change := range map[string]func(*clusterOptions){
		"--node-labels":          func(o *clusterOptions) { o.labels = "node-restriction.kubernetes.io/a=b" },
		"--register-with-taints": func(o *clusterOptions) { o.taints = "a" },
		"no such file":           func(o *clusterOptions) { o.kubeconfig += ".none" },
		"--bootstrap-kubeconfig": func(o *clusterOptions) { o.bootstrap = kubeconfig + ".none" },
	} {
		bad := opts
		bad.cluster.kubeconfig = kubeconfig
		change(&bad.cluster)
		_, err := join(t.Context(), bad, counts(t), slog.New(slog.DiscardHandler))
		assert.ErrorContains(t, err, want)
	}
	opts.cluster.kubeconfig = kubeconfig
	c, err := join(t.Context(), opts, counts(t), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	sources, err := c.sources(opts, map[string]podsource.PodSource{})
	require.NoError(t, err)
	assert.Contains(t, sources, podsource.APISource)
	assert.Equal(t, "m and https://127.0.0.1:1", c.from("m"))
}

func TestAnAgentThatStandsAloneHasNoCluster(t *testing.T) {
	c, err := join(t.Context(), options{}, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Nil(t, c)
	sources, err := c.sources(options{}, map[string]podsource.PodSource{})
	require.NoError(t, err)
	assert.Empty(t, sources)
	assert.Empty(t, c.parts(nil))
	assert.Nil(t, c.pipelineObjects())
	assert.Nil(t, c.mirrorPods())
	assert.Nil(t, c.runtime(cri.Config{}).Objects)
	assert.Equal(t, "n", c.place(admission.Node{Name: "n"}).Name)
	assert.Equal(t, []string{"ip"}, c.hostIPs([]string{"ip"})())
	assert.Equal(t, "m", c.from("m"))
	assert.NoError(t, c.describe(nodeFacts{}))
	c.onReturn(nil)
	c.onChange(nil)
}

// Without the declaration the scheduler keeps pods with such rules away, and the API
// server refuses such resizes.
func TestANodeDeclaresWhatItCanDo(t *testing.T) {
	assert.Equal(t, []string{
		"ExtendWebSocketsToKubelet", "InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits",
	}, declared(true, runtime.Features{}))
	assert.Equal(t, []string{"ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"}, declared(false, runtime.Features{}))
	assert.Equal(t, []string{
		"ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "VolumeBindMountOptions",
	}, declared(false, runtime.Features{UserNamespacesHostNetwork: true, MountOptions: true}))
	var known []string
	for _, f := range features.AllFeatures {
		known = append(known, f.Name())
	}
	assert.Subset(t, known, declared(true, runtime.Features{UserNamespacesHostNetwork: true, MountOptions: true}))
}
