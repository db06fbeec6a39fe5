package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// configFile writes a KubeletConfiguration with these lines.
func configFile(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubelet.yaml")
	require.NoError(t, os.WriteFile(path, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"+lines), 0o600))
	return path
}

func TestFlagsWinOverTheKubeletConfiguration(t *testing.T) {
	file := configFile(t, "containerRuntimeEndpoint: unix:///a.sock\nstaticPodPath: /a\npodLogsDir: /logs\nhairpinMode: hairpin-veth\nmemorySwap: {swapBehavior: NoSwap}\n")
	o, err := parseFlags([]string{"--manifests=/b", "--config=" + file})
	require.NoError(t, err)
	assert.Equal(t, "unix:///a.sock", o.runtime)
	assert.Equal(t, "/b", o.manifests)
	assert.Equal(t, "/logs", o.logs)
	assert.Equal(t, []string{"hairpinMode changes nothing: the CNI plugin decides whether a pod reaches itself by its service (bridge: hairpinMode)"}, o.warnings)
}

func TestWithoutAFileTheKubeletsDefaultsHold(t *testing.T) {
	o, err := parseFlags([]string{"--manifests=/b"})
	require.NoError(t, err)
	assert.Equal(t, "process", o.runtime)
	assert.True(t, *o.kubelet.CgroupsPerQOS)
	assert.Equal(t, []string{"pods"}, o.kubelet.EnforceNodeAllocatable)
	assert.Empty(t, o.warnings)
}

func TestAKubeletConfigurationThatCannotBeRightIsAnError(t *testing.T) {
	for name, tc := range map[string]struct{ lines, says string }{
		"unknown field":  {"cgroupRot: /x\n", `unknown field "cgroupRot"`},
		"wrong case":     {"CgroupRoot: /x\n", `unknown field "CgroupRoot"`},
		"a field twice":  {"port: 1\nport: 2\n", `"port" already set`},
		"not of a type":  {"port: many\n", "cannot unmarshal string"},
		"another object": {"kind: Pod\n", `"kind" already set`},
		"not YAML":       {"\tport: 1\n", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			file := configFile(t, tc.lines)
			_, err := parseFlags([]string{"--manifests=/b", "--config", file})
			require.ErrorContains(t, err, tc.says)
			assert.ErrorContains(t, err, file, "the file is named")
		})
	}
	_, _, err := decodeConfig([]byte("apiVersion: v1\nkind: ConfigMap\n"))
	assert.ErrorContains(t, err, `want kubelet.config.k8s.io/v1beta1, KubeletConfiguration`)
	_, err = parseFlags([]string{"--config=/none/such"})
	assert.ErrorContains(t, err, "/none/such")
}

func TestImagesGoAsTheKubeletConfigurationSays(t *testing.T) { // ig-1
	file := configFile(t, "imageGCHighThresholdPercent: 70\nimageGCLowThresholdPercent: 60\nimageMinimumGCAge: 5m\nimageMaximumGCAge: 168h\n")
	o, err := parseFlags([]string{"--manifests=/b", "--config=" + file})
	require.NoError(t, err)
	assert.Empty(t, o.warnings)
	p := imagePolicy(&o.kubelet, nil)
	assert.EqualValues(t, 70, *p.HighPercent)
	assert.EqualValues(t, 60, *p.LowPercent)
	assert.Equal(t, 5*time.Minute, p.MinAge)
	assert.Equal(t, 168*time.Hour, p.MaxAge)
}
