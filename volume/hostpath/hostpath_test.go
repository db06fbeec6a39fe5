package hostpath_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/hostpath"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func TestTypes(t *testing.T) {
	dir, err := os.MkdirTemp("", "hp")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(in("file"), nil, 0o600))
	listener, err := net.Listen("unix", in("socket"))
	require.NoError(t, err)
	defer listener.Close()
	for _, c := range []struct {
		name string
		path string
		typ  v1.HostPathType
		err  string
	}{
		{"vol-49 unset", in("nothing"), v1.HostPathUnset, ""},
		{"vol-49 directory", dir, v1.HostPathDirectory, ""},
		{"vol-49 no directory", in("file"), v1.HostPathDirectory, "hostPath type check failed: " + in("file") + " is not a directory, it's a File"},
		{"vol-49 nothing", in("nothing"), v1.HostPathDirectory, "hostPath type check failed, " + in("nothing") + " is not a directory, unable to determine its type: path \"" + in("nothing") + "\" does not exist"},
		{"vol-49 directory, made", in("a/b"), v1.HostPathDirectoryOrCreate, ""},
		{"vol-49 directory, there", dir, v1.HostPathDirectoryOrCreate, ""},
		{"vol-49 a file instead", in("file"), v1.HostPathDirectoryOrCreate, "hostPath type check failed: " + in("file") + " is not a directory, it's a File"},
		{"vol-49 file", in("file"), v1.HostPathFile, ""},
		{"vol-49 no file", dir, v1.HostPathFile, "hostPath type check failed: " + dir + " is not a file, it's a Directory"},
		{"vol-49 file, made", in("new"), v1.HostPathFileOrCreate, ""},
		{"vol-49 a directory instead", dir, v1.HostPathFileOrCreate, "hostPath type check failed: " + dir + " is not a file, it's a Directory"},
		{"vol-49 file, without its directory", in("no/file"), v1.HostPathFileOrCreate, "no such file or directory"},
		{"vol-49 socket", in("socket"), v1.HostPathSocket, ""},
		{"vol-49 no socket", in("file"), v1.HostPathSocket, "hostPath type check failed: " + in("file") + " is not a socket file, it's a File"},
		{"vol-49 character device", os.DevNull, v1.HostPathCharDev, ""},
		{"vol-49 no character device", in("file"), v1.HostPathCharDev, "hostPath type check failed: " + in("file") + " is not a character device, it's a File"},
		{"vol-49 no block device", os.DevNull, v1.HostPathBlockDev, "hostPath type check failed: " + os.DevNull + " is not a block device, it's a CharDevice"},
		{"vol-49 below a file", in("file/x"), v1.HostPathFile, "unable to determine its type: stat " + in("file/x")},
		{"vol-49 no such type", dir, "Tape", "Tape is an invalid volume type"},
		{"vol-50 up", "/a/../b", v1.HostPathUnset, "invalid HostPath `/a/../b`: must not contain '..'"},
		{"zero byte", "/a\x00b", v1.HostPathUnset, `invalid HostPath "/a\x00b": must not contain a zero byte`},
		{"relative", "a/b", v1.HostPathUnset, "invalid HostPath `a/b`: must be an absolute path"},
		{"empty", "", v1.HostPathUnset, "invalid HostPath ``: must be an absolute path"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && (c.typ == v1.HostPathCharDev || c.typ == v1.HostPathSocket || c.typ == v1.HostPathBlockDev) {
				t.Skip("there are no such files")
			}
			p := new(hostpath.Plugin)
			req := volumetest.Request(t, p, spec(c.path, c.typ))
			mounted, err := p.SetUp(t.Context(), req)
			assert.NoDirExists(t, req.PodDir())
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.path, mounted.Path)
			require.NoError(t, p.TearDown(t.Context(), req.Place))
			if c.typ != v1.HostPathUnset {
				assert.True(t, exists(c.path), "it stays")
			}
		})
	}
	if runtime.GOOS == "windows" {
		return
	}
	for name, want := range map[string]fs.FileMode{"a": 0o755, "a/b": 0o755, "new": 0o644} {
		info, err := os.Stat(in(name))
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode().Perm(), name)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestPersistentVolumesMayBeHostPaths(t *testing.T) {
	p := new(hostpath.Plugin)
	s := &volume.Spec{ReadOnly: true, PV: &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{
		PersistentVolumeSource: v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: t.TempDir()}},
	}}}
	s.PV.Name = "pv"
	require.True(t, p.CanSupport(s))
	mounted, err := p.SetUp(t.Context(), volumetest.Request(t, p, s))
	require.NoError(t, err)
	assert.True(t, mounted.ReadOnly)
}
