package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzKubeletConfiguration reads a configuration file and one that is merged into it.
func FuzzKubeletConfiguration(f *testing.F) {
	const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	f.Add([]byte(head+"maxPods: 5\nevictionHard: {memory.available: 100Mi}\n"), []byte(head+"evictionHard: {nodefs.available: 10%}\n"))
	f.Add([]byte(head+"authentication: {anonymous: {enabled: false}}\n"), []byte(head+"authentication: null\nmaxPods: null\n"))
	f.Add([]byte(head+"x: &x {a: 1}\nfeatureGates: {<<: *x}\n"), []byte("{}"))
	f.Add([]byte(head+"a: &a [x,x,x]\nb: &b [*a,*a,*a]\nclusterDNS: [*b,*b]\n"), []byte("kind: []\n"))
	f.Add([]byte(head+"syncFrequency: -1h\nsystemReserved: {cpu: 1e99}\n"), []byte(head+"logging: {verbosity: -1, vmodule: [{}]}\n"))
	f.Add([]byte(`{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration","shutdownGracePeriodByPodPriority":[{}]}`), []byte("---\n---\n"))
	f.Fuzz(func(t *testing.T, file, extra []byte) {
		dir := t.TempDir()
		path, extras, twice := filepath.Join(dir, "config"), filepath.Join(dir, "extra"), filepath.Join(dir, "twice")
		require.NoError(t, os.Mkdir(extras, 0o700))
		require.NoError(t, os.Mkdir(twice, 0o700))
		require.NoError(t, os.WriteFile(path, file, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(extras, "10.conf"), extra, 0o600))
		for _, name := range []string{"10.conf", "20.conf"} {
			require.NoError(t, os.WriteFile(filepath.Join(twice, name), extra, 0o600))
		}
		alone, _, err := Read(path, "")
		if err != nil {
			require.Less(t, len(err.Error()), 64<<10)
			return
		}
		again, _, err := Read(path, "")
		require.NoError(t, err)
		require.Equal(t, alone, again, "reading a file twice")
		merged, warnings, err := Read(path, extras)
		mergedTwice, warningsTwice, errTwice := Read(path, twice)
		require.Equal(t, err == nil, errTwice == nil)
		require.Equal(t, merged, mergedTwice, "merging a file twice")
		require.Equal(t, aboutFields(warnings, dir), aboutFields(warningsTwice, dir))
	})
}

// aboutFields returns the warnings that do not name a file in dir.
func aboutFields(warnings []string, dir string) []string {
	return slices.DeleteFunc(warnings, func(w string) bool { return strings.HasPrefix(w, dir) })
}
