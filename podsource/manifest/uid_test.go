package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/runtime"
)

// A kubeletUID is a line of testdata/static/uids.txt: the UIDs that the code of that
// version of Kubernetes gives to a manifest, of 1.38 that of v1.38.0-beta.0. test/adopt compares
// them with those of real kubelets.
type kubeletUID struct {
	version, name string
	file, url     types.UID
}

func kubeletUIDs(t *testing.T) (uids []kubeletUID) {
	data, err := os.ReadFile("testdata/static/uids.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); f[0] != "#" {
			uids = append(uids, kubeletUID{f[0], f[1], types.UID(f[2]), types.UID(f[3])})
		}
	}
	require.NotEmpty(t, uids)
	return uids
}

func static(t *testing.T, name, origin string, opts manifest.StaticOptions) (uid types.UID, hash string) {
	data, err := os.ReadFile(filepath.Join("testdata/static", name+".yaml"))
	require.NoError(t, err)
	pod, err := manifest.Static(data, "Node", origin, opts)
	require.NoError(t, err, name)
	return pod.UID, pod.Annotations[runtime.ConfigHashAnnotation]
}

func TestStaticPodsHaveTheUIDsOfTheKubeletOfThisVersion(t *testing.T) {
	for _, k := range kubeletUIDs(t) {
		if k.version != runtime.KubernetesMajorMinor {
			continue
		}
		uid, hash := static(t, k.name, "file:/etc/kubernetes/manifests/"+k.name+".yaml", manifest.StaticOptions{})
		assert.Equal(t, k.file, uid, k.name)
		assert.Equal(t, string(k.file), hash, k.name)
		uid, _ = static(t, k.name, "url:http://user:secret@127.0.0.1/"+k.name, manifest.StaticOptions{NoToleration: true})
		assert.Equal(t, k.url, uid, k.name)
	}
}

func TestStaticPodsOfOtherKubeletsKeepTheirUIDs(t *testing.T) {
	for _, k := range kubeletUIDs(t) {
		if k.name == "resources" && (k.version == "1.38") != (runtime.KubernetesMinor >= 38) {
			continue // it has quantities that are no int64, which the library of 1.38 represents in another way
		}
		exists := func(uid types.UID) bool { return uid == k.file || uid == k.url }
		uid, hash := static(t, k.name, "file:/etc/kubernetes/manifests/"+k.name+".yaml", manifest.StaticOptions{Exists: exists})
		assert.Equal(t, k.file, uid, "%s %s", k.version, k.name)
		assert.Equal(t, string(k.file), hash, "the mirror pod is kept as well")
		uid, _ = static(t, k.name, "url:http://user:secret@127.0.0.1/"+k.name, manifest.StaticOptions{NoToleration: true, Exists: exists})
		assert.Equal(t, k.url, uid, "%s %s", k.version, k.name)
	}
}

// A changed manifest is another pod for every version.
func TestAChangedManifestDoesNotKeepTheUIDOfAnOlderKubelet(t *testing.T) {
	data, err := os.ReadFile("testdata/static/minimal.yaml")
	require.NoError(t, err)
	old := map[types.UID]bool{}
	for _, k := range kubeletUIDs(t) {
		old[k.file] = true
	}
	for _, change := range [][2]string{{"3600", "3601"}, {"name: main", "name: other"}, {":1.36", ":1.37"}} {
		text := strings.Replace(string(data), change[0], change[1], 1)
		require.NotEqual(t, string(data), text)
		pod, err := manifest.Static([]byte(text), "node", "file:/etc/kubernetes/manifests/minimal.yaml", manifest.StaticOptions{Exists: func(uid types.UID) bool { return old[uid] }})
		require.NoError(t, err)
		assert.NotContains(t, old, pod.UID, change[1])
	}
}

// This version is preferred if the node has directories of several.
func TestThePodOfTheKubeletOfThisVersionIsPreferred(t *testing.T) {
	for _, k := range kubeletUIDs(t) {
		if k.version == runtime.KubernetesMajorMinor {
			uid, _ := static(t, k.name, "file:/etc/kubernetes/manifests/"+k.name+".yaml", manifest.StaticOptions{Exists: func(types.UID) bool { return true }})
			assert.Equal(t, k.file, uid, k.name)
		}
	}
}
