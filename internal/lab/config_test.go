package lab

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConfigHasTheFormatOfTheVersion(t *testing.T) {
	l := layout{dir: "/d", bridge: "kplab7", subnet: "10.231.28.0/22", cniBin: "/plugins"}
	for version, want := range map[string]string{
		"1.6.20": "version = 2\n",
		"1.7.0":  "version = 2\n",
		"2.4.2":  "version = 3\n",
		"10.0":   "version = 3\n",
	} {
		got, err := l.config(version)
		require.NoError(t, err)
		require.Contains(t, got, want, version)
		for _, part := range []string{"restrict_oom_score_adj = true", Pause, `"/d/cni"`, `"/plugins"`, `"/d/runc"`, `"/d/opt"`} {
			require.Contains(t, got, part, version)
		}
	}
	_, err := l.config("devel")
	require.ErrorContains(t, err, `"devel"`)
}

func TestConflistHasTheBridgeAndItsSubnet(t *testing.T) {
	data, err := layout{dir: "/d", bridge: "kplab7", subnet: "10.231.28.0/22"}.conflist()
	require.NoError(t, err)
	require.True(t, json.Valid(data))
	require.Contains(t, string(data), `"bridge": "kplab7"`)
	require.Contains(t, string(data), `"subnet": "10.231.28.0/22"`)
	require.Contains(t, string(data), `"dataDir": "/d/ipam"`)
}

func TestParseVersionReadsWhatContainerdsPrint(t *testing.T) {
	for line, want := range map[string]string{
		"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3": "1.6.20",
		"containerd github.com/containerd/containerd/v2 2.4.2+unknown ":               "2.4.2",
		"containerd github.com/containerd/containerd/v2 v2.1.0-rc.1 abcdef":           "2.1.0",
	} {
		got, err := parseVersion(line)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := parseVersion("containerd\n")
	require.ErrorContains(t, err, `"containerd\n"`)
}

func TestAMirrorIsNamedWhereContainerdLooks(t *testing.T) {
	l := layout{dir: t.TempDir()}
	for _, version := range []string{"1.6.20", "2.4.2"} {
		config, err := l.config(version)
		require.NoError(t, err)
		require.Contains(t, config, "config_path = \""+l.hosts()+"\"")
	}
	require.NoError(t, l.mirror("", nil))
	require.NoDirExists(t, l.hosts())
	require.NoError(t, l.mirror("http://127.0.0.1:5000", []string{"registry.k8s.io"}))
	hosts, err := os.ReadFile(filepath.Join(l.hosts(), "registry.k8s.io", "hosts.toml"))
	require.NoError(t, err)
	require.Equal(t, "server = \"http://127.0.0.1:5000\"\n[host.\"http://127.0.0.1:5000\"]\n  capabilities = [\"pull\", \"resolve\"]\n", string(hosts))
}
