//go:build unix

package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// withVolume is a pod whose one container mounts one volume.
func withVolume(name, volume, mount string) string {
	return manifest(name, "volumes: [{name: v, "+volume+"}]", containers(container("main", untilTerm, "volumeMounts: [{name: v, mountPath: /v"+mount+"}]")))
}

// tree lists the content of a directory: files with their content, links with their
// targets.
func tree(t *testing.T, dir string) (list []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		line := fmt.Sprint(path, " ", info.Mode())
		switch {
		case err != nil:
		case d.Type() == os.ModeSymlink:
			to, _ := os.Readlink(path)
			line += " -> " + to
		case d.Type() == 0:
			data, _ := os.ReadFile(path)
			line += " " + string(data)
		}
		list = append(list, line)
		return err
	}))
	return list
}

// Invalid volumes: each pod waits, an event reports the cause in the kubelet's format,
// nothing is written anywhere, the other pods run, and once the cause is removed the
// pod runs, too.
func TestInvalidVolumesAreReportedAndAffectNoOther(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of real time")
	}
	a := newAgent(t, "process")
	objects, outside := filepath.Join(a.dir, "objects"), filepath.Join(a.dir, "outside")
	for _, dir := range []string{objects, filepath.Join(outside, "dir"), filepath.Join(outside, "volume")} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(outside, "file"), []byte("canary"), 0o644))
	require.NoError(t, os.Symlink(filepath.Join(outside, "dir"), filepath.Join(outside, "volume", "absolute")))
	require.NoError(t, os.Symlink("../dir", filepath.Join(outside, "volume", "up")))
	require.NoError(t, os.WriteFile(filepath.Join(objects, "big.yaml"), []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: big}\nstringData: {k: "+strings.Repeat("x", 5<<18)+"}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(objects, "conf.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf}\ndata: {k: v}\n"), 0o600))

	host := func(path, kind string) string {
		return "hostPath: {path: " + filepath.Join(outside, path) + ", type: " + kind + "}"
	}
	failed := func(text string) string { return `MountVolume.SetUp failed for volume "v" : ` + text }
	notA := func(path, what, actual string) string {
		return failed("hostPath type check failed: " + filepath.Join(outside, path) + " is not a " + what + ", it's a " + actual)
	}
	subPath := `failed to prepare subPath for volumeMount "v" of container "main"`
	cases := map[string]struct{ volume, mount, event string }{
		"not-a-directory":   {host("file", "Directory"), "", notA("file", "directory", "File")},
		"no-such-directory": {host("none", "Directory"), "", failed("hostPath type check failed, " + filepath.Join(outside, "none") + " is not a directory, unable to determine its type: path")},
		"not-a-file":        {host("dir", "File"), "", notA("dir", "file", "Directory")},
		"not-a-socket":      {host("file", "Socket"), "", notA("file", "socket file", "File")},
		"not-a-device":      {host("file", "CharDevice"), "", notA("file", "character device", "File")},
		"not-a-disk":        {host("dir", "BlockDevice"), "", notA("dir", "block device", "Directory")},
		"secret-too-long":   {"secret: {secretName: big}", "", failed(`secret "big" not found`)},
		"no-config-map":     {"configMap: {name: none}", "", failed(`configmap "none" not found`)},
		"no-such-key":       {"configMap: {name: conf, items: [{key: none, path: x}]}", "", failed("configmap references non-existent config key: none")},
		"claim-of-others":   {"persistentVolumeClaim: {claimName: theirs}", "", "Forbidden: static pods may not reference persistentvolumeclaims"},
		"path-up":           {"configMap: {name: conf, items: [{key: k, path: ../x}]}", "", "must not contain '..'"},
		"absolute-link":     {host("volume", "Directory"), ", subPath: absolute/new", subPath},
		"link-up":           {host("volume", "Directory"), ", subPath: up/new", subPath},
	}
	a.write("good.yaml", sleeper("good"))
	for name, c := range cases {
		a.write(name+".yaml", withVolume(name, c.volume, c.mount))
	}
	before := tree(t, outside)
	a.start("--objects=" + objects)
	for name, c := range cases {
		a.eventually(name+" gets the event "+c.event, func() bool {
			for l := range strings.Lines(a.out.String()) {
				if strings.Contains(l, name) && strings.Contains(l, c.event) {
					return true
				}
			}
			return false
		})
	}
	a.eventually("the good pod runs", func() bool { return running(a.pods()["good"]) })
	pods := a.pods()
	for name := range cases {
		pod, taken := pods[name]
		assert.False(t, running(pod), name)
		assert.True(t, !taken || pod.Status.Phase == v1.PodPending, "%s is %s", name, pod.Status.Phase)
	}
	assert.Equal(t, before, tree(t, outside), "nothing was written there")
	assert.Contains(t, a.out.String(), "data: Too long: may not be more than 1048576 bytes")

	// The missing objects are created.
	require.NoError(t, os.Mkdir(filepath.Join(outside, "none"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(objects, "big.yaml"), []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: big}\nstringData: {k: small}\n"), 0o600))
	for _, name := range []string{"no-such-directory", "secret-too-long"} {
		a.eventually(name+" runs", func() bool { return running(a.pods()[name]) })
	}
}
