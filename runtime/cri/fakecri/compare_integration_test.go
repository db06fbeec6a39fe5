package fakecri_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
)

// containerd gives the responses in the script.
func TestIntegrationTheScriptHasTheResponsesOfContainerd(t *testing.T) {
	cgroup := fmt.Sprintf("kubeparts-calls-%d", os.Getpid())
	t.Cleanup(func() { removeCgroup(t, cgroup) }) // after the daemon's
	daemon := lab.Containerd(t, lab.ContainerdConfig{})
	registry := lab.NewRegistry(t)
	registry.PushBusybox("app:1")
	registry.PushBusybox("private:1", "bob")
	client, err := remote.Dial(t.Context(), daemon.Endpoint, remote.Config{Timeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close(context.Background()) })

	script, rest := readScript(t)
	s := &subject{runtime: client.Runtime, images: client.Images, registry: registry.Host, password: lab.RegistryPassword, logs: t.TempDir(), cgroup: "/" + cgroup}
	if *update {
		require.Equal(t, "2.4.2", daemon.Version, "the script contains the responses of this version")
		writeScript(t, s.play(t, script), rest)
		return
	}
	var but known
	if strings.HasPrefix(daemon.Version, "1.6.") {
		but = in16
	}
	script = but.without(script)
	played := s.play(t, script)
	diffs := differences(script, played, but)
	assert.Empty(t, diffs, strings.Join(diffs, "\n"))
	t.Logf("%d calls to containerd %s", len(played), daemon.Version)
}

// in16 are the differences of containerd 1.6.
var in16 = known{
	"create x in=a nometa":                    {why: "it crashes"},
	"create x in=a nil":                       {why: "it crashes"},
	"create x in=a name=long nosandboxconfig": {why: "it crashes"},

	"runtime-config":                         {"Unimplemented", "the call is newer"},
	"update-pod absent cpu=512":              {"Unimplemented", "the call is newer"},
	"metric-descriptors":                     {"Unimplemented", "the call is newer"},
	"list-metrics":                           {"Unimplemented", "the call is newer"},
	"list-metrics (2)":                       {"Unimplemented", "the call is newer"},
	"update-pod a cpu=512":                   {"Unimplemented", "the call is newer"},
	"update-pod b cpu=512":                   {"Unimplemented", "the call is newer"},
	"checkpoint absent":                      {"Unimplemented", "the call is newer"},
	"checkpoint c":                           {"Unimplemented", "the call is newer"},
	"checkpoint c (2)":                       {"Unimplemented", "the call is newer"},
	"checkpoint d":                           {"Unimplemented", "the call is newer"},
	"stop-pod absent":                        {"NotFound", "stopping an unknown ID was an error"},
	"stop absent 0":                          {"NotFound", "stopping an unknown ID was an error"},
	"stop absent 5":                          {"NotFound", "stopping an unknown ID was an error"},
	"stop absent -1":                         {"NotFound", "stopping an unknown ID was an error"},
	"stop-pod a2 (3)":                        {"NotFound", "stopping an unknown ID was an error"},
	"stop d 0 (2)":                           {"NotFound", "stopping an unknown ID was an error"},
	"run x name=web ns=prod uid=u1":          {"Unknown", "a name that is taken had no code"},
	"run x name=db ns=prod uid=u2 attempt=0": {"Unknown", "a name that is taken had no code"},
	"create x in=a name=long":                {"Unknown", "a name that is taken had no code"},
	"create x in=a name=exit3":               {"Unknown", "a name that is taken had no code"},
	"create x in=b name=long attempt=7":      {"NotFound", "the sandbox had no task any more"},
	"pod-stats b":                            {"Unknown", "a sandbox that is not ready had no code"},
	"list-pod-stats (3)":                     {"Unknown", "a sandbox that is not ready failed the whole list"},
}

// removeCgroup removes the cgroups that containerd leaves below a parent of pods, in all
// hierarchies.
func removeCgroup(t *testing.T, name string) {
	for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
		dirs, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, dir := range dirs {
			if err := os.Remove(dir); !errors.Is(err, fs.ErrNotExist) {
				assert.NoError(t, err)
			}
		}
	}
}
