package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/volume/local"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// vol-59
func TestADirectoryIsBound(t *testing.T) {
	mounter := new(volumetest.Mounter)
	s := spec(t.TempDir())
	s.PV.Spec.MountOptions = []string{"noexec", "bind"}
	s.ReadOnly = true
	p := plugin(t, t.TempDir(), mounter)
	req := volumetest.Request(t, p, s)
	require.NoError(t, p.Stage(t.Context(), req))
	mounted, err := p.SetUp(t.Context(), req)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(req.RootDir, "pods", "u1", "volumes", "kubernetes.io~local-volume", "pv-1"), mounted.Path)
	assert.True(t, mounted.ReadOnly)
	points, err := mounter.List()
	require.NoError(t, err)
	require.Len(t, points, 1)
	assert.Equal(t, s.PV.Spec.Local.Path, points[0].Device)
	assert.Equal(t, []string{"bind", "ro", "noexec"}, points[0].Opts)
	name, err := p.SharedName(s)
	require.NoError(t, err)
	assert.Equal(t, "pv-1", name)
}

// vol-59
func TestAnotherGroupIsWarned(t *testing.T) {
	mounter := new(volumetest.Mounter)
	s := spec(t.TempDir())
	root := t.TempDir()
	p := plugin(t, root, mounter)
	first := volumetest.Request(t, p, s)
	first.RootDir = root
	_, err := p.SetUp(t.Context(), first)
	require.NoError(t, err)

	second := first
	second.PodUID = "u2"
	group := int64(424242)
	second.FSGroup = &group
	var events []string
	second.Event = func(eventType, reason, message string) { events = append(events, eventType+" "+reason+" "+message) }
	_, err = p.SetUp(t.Context(), second)
	require.NoError(t, err)
	require.Len(t, events, 1)
	assert.Regexp(t, `^Warning AlreadyMountedVolume The requested fsGroup is 424242, but the volume pv-1 has GID \d+\. The volume may not be shareable\.$`, events[0])
}

func TestPathsThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, want := range map[string]string{
		"/a/../b":      "local: invalid path: /a/../b must not contain '..'",
		"relative":     `local: invalid path: "relative" must be an absolute path`,
		"/not-there-x": `local: path "/not-there-x" does not exist`,
		file:           `local: path "` + file + `": only directory and block device are supported`,
	} {
		p := plugin(t, t.TempDir(), new(volumetest.Mounter))
		req := volumetest.Request(t, p, spec(path))
		require.EqualError(t, p.Stage(t.Context(), req), want)
		_, err := p.SetUp(t.Context(), req)
		require.EqualError(t, err, want)
		assert.NoDirExists(t, req.PodDir())
	}
	for _, cfg := range []local.Config{{}, {Mounter: new(volumetest.Mounter)}, {Mounter: new(volumetest.Mounter), RootDir: "x"}} {
		_, err := local.New(cfg)
		require.ErrorContains(t, err, "local: Config.")
	}
}

// The content of the volume outlives the pod.
func TestABindMountOnTheMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	data := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(data, "canary"), []byte("alive"), 0o600))
	root := t.TempDir()
	p := plugin(t, root, mount.New(""))
	req := volumetest.Request(t, p, spec(data))
	mounted, err := p.SetUp(t.Context(), req)
	if err != nil {
		t.Skipf("mounting is not permitted on this machine: %v", err)
	}
	t.Cleanup(func() { _ = p.TearDown(t.Context(), req.Place) })
	assert.FileExists(t, filepath.Join(mounted.Path, "canary"))
	for range 2 {
		require.NoError(t, p.TearDown(t.Context(), req.Place))
		assert.NoDirExists(t, mounted.Path)
	}
	assert.FileExists(t, filepath.Join(data, "canary"))
}
