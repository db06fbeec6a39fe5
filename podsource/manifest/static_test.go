package manifest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestStaticMarksThePod(t *testing.T) {
	pod, err := manifest.Static([]byte(webYAML), "Node-1", "file:/etc/web.yaml", manifest.StaticOptions{})
	require.NoError(t, err)
	assert.Equal(t, "web-node-1", pod.Name, "src-17")
	assert.Equal(t, "default", pod.Namespace, "src-17")
	assert.Equal(t, "Node-1", pod.Spec.NodeName, "src-17")
	assert.Equal(t, v1.PodPending, pod.Status.Phase, "src-17")
	assert.Equal(t, []v1.Toleration{{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}}, pod.Spec.Tolerations, "src-19")
	assert.Equal(t, string(pod.UID), pod.Annotations[runtime.ConfigHashAnnotation], "src-18")
	assert.Regexp(t, "^[0-9a-f]{32}$", pod.UID, "src-16")
	assert.Equal(t, v1.RestartPolicyAlways, pod.Spec.RestartPolicy, "src-14")
}

func TestUIDsFollowTheContentAndNotItsForm(t *testing.T) {
	uid := func(text string) string {
		pod, err := manifest.Static([]byte(text), "n", "o", manifest.StaticOptions{})
		require.NoError(t, err)
		return string(pod.UID)
	}
	json := `{"spec":{"containers":[{"image":"nginx:1.29","name":"nginx"}]},"metadata":{"name":"web"},"kind":"Pod","apiVersion":"v1"}`
	assert.Equal(t, uid(webYAML), uid("# comment\n---\n"+webYAML))
	assert.Equal(t, uid(webYAML), uid(json))
	assert.NotEqual(t, uid(webYAML), uid(strings.Replace(webYAML, "1.29", "1.30", 1)))
}

func TestAnExplicitUIDIsKeptAndTheHashFollowsTheContent(t *testing.T) {
	text := strings.Replace(webYAML, "name: web", "name: web\n  uid: my-uid", 1)
	a, err := manifest.Static([]byte(text), "n", "o", manifest.StaticOptions{})
	require.NoError(t, err)
	b, err := manifest.Static([]byte(strings.Replace(text, "1.29", "1.30", 1)), "n", "o", manifest.StaticOptions{})
	require.NoError(t, err)
	assert.Equal(t, "my-uid", string(a.UID), "src-16")
	assert.Equal(t, a.UID, b.UID)
	assert.NotEqual(t, a.Annotations[runtime.ConfigHashAnnotation], b.Annotations[runtime.ConfigHashAnnotation], "lq-25")
}

func TestStaticRefusesWhatCannotBeAStaticPod(t *testing.T) {
	for name, tc := range map[string]struct{ old, with, want string }{
		"no name (src-15)":     {"name: web", "generateName: web-", "metadata.name: Required value: name is needed for the pod"},
		"name":                 {"name: web", "name: Web_1", `metadata.name: Invalid value: "Web_1"`},
		"name too long":        {"name: web", "name: " + strings.Repeat("a", 252), `with the node's name added: must be no more than 253`},
		"UID as a path":        {"name: web", "name: web\n  uid: ../../etc", `metadata.uid: Invalid value: "../../etc"`},
		"no containers":        {"containers:\n  - name: nginx\n    image: nginx:1.29", "containers: []", "spec.containers: Required value"},
		"API object (src-21)":  {"containers:", "serviceAccountName: sa\n  containers:", "spec.serviceAccountName: Forbidden: static pods may not reference serviceaccounts"},
		"a saved mirror pod":   {"name: web", "name: web\n  annotations: {kubernetes.io/config.mirror: x}", "metadata.annotations[kubernetes.io/config.mirror]: Forbidden"},
		"namespace":            {"name: web", "name: web\n  namespace: A", `metadata.namespace: Invalid value: "A"`},
		"ephemeral containers": {"containers:", "ephemeralContainers: [{name: d, image: d}]\n  containers:", "spec.ephemeralContainers: Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, webYAML, tc.old)
			_, err := manifest.Static([]byte(strings.Replace(webYAML, tc.old, tc.with, 1)), "node", "file:/x.yaml", manifest.StaticOptions{})
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestStaticRefusesReferencesToTheAPI(t *testing.T) {
	container := func(s string) string {
		return strings.Replace(webYAML, "    image: nginx:1.29\n", "    image: nginx:1.29\n"+s, 1)
	}
	volume := func(s string) string { return webYAML + "  volumes:\n  - name: v\n    " + s + "\n" }
	for _, tc := range []struct{ manifest, want string }{
		{container("    env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]\n"), "spec.containers[0].env[0].valueFrom.secretKeyRef: Forbidden: static pods may not reference secrets"},
		{container("    env: [{name: A, valueFrom: {configMapKeyRef: {name: s, key: k}}}]\n"), "static pods may not reference configmaps"},
		{container("    envFrom: [{secretRef: {name: s}}]\n"), "spec.containers[0].envFrom[0].secretRef: Forbidden: static pods may not reference secrets"},
		{container("    envFrom: [{configMapRef: {name: s}}]\n"), "static pods may not reference configmaps"},
		{webYAML + "  imagePullSecrets: [{name: s}]\n", "spec.imagePullSecrets: Forbidden: static pods may not reference secrets"},
		{webYAML + "  resourceClaims: [{name: s, resourceClaimName: x}]\n", "static pods may not reference resourceclaims"},
		{volume("secret: {secretName: s}"), "spec.volumes[0].secret: Forbidden: static pods may not reference secrets"},
		{volume("configMap: {name: s}"), "static pods may not reference configmaps"},
		{volume("persistentVolumeClaim: {claimName: s}"), "static pods may not reference persistentvolumeclaims"},
		{volume("csi: {driver: s}"), "static pods may not reference csidrivers"},
		{volume("azureFile: {secretName: s, shareName: x}"), "static pods may not reference secrets"},
		{volume("glusterfs: {endpoints: s, path: x}"), "static pods may not reference endpoints"},
		{volume("projected: {sources: [{serviceAccountToken: {path: x}}]}"), "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: static pods may not reference serviceaccounts"},
		{volume("projected: {sources: [{secret: {name: x}}]}"), "static pods may not reference secrets"},
		{volume("iscsi: {targetPortal: x, iqn: q, lun: 0, secretRef: {name: x}}"), "spec.volumes[0].iscsi.secretRef: Forbidden"},
	} {
		_, err := manifest.Static([]byte(tc.manifest), "node", "o", manifest.StaticOptions{})
		assert.ErrorContains(t, err, tc.want)
	}
	for _, s := range []string{"hostPath: {path: /x}", "emptyDir: {}", "nfs: {server: a, path: /x}", "iscsi: {targetPortal: x, iqn: q, lun: 0}",
		"downwardAPI: {items: []}", "image: {reference: x}", "projected: {sources: [{downwardAPI: {items: []}}]}"} {
		_, err := manifest.Static([]byte(volume(s)), "node", "o", manifest.StaticOptions{})
		assert.NoError(t, err, s)
	}
}

// As with a kubelet of 1.37, only the API server sets requests and limits of the pod as a
// whole: a static pod with limits alone is Burstable.
func TestStaticPodsGetNoResourcesOfTheirOwn(t *testing.T) { // src-35
	for resources, want := range map[string]v1.PodQOSClass{
		"{limits: {cpu: 1, memory: 1Gi}}":                                  v1.PodQOSBurstable,
		"{requests: {cpu: 1}}":                                             v1.PodQOSBurstable,
		"{requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}": v1.PodQOSGuaranteed,
	} {
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  resources: " + resources +
			"\n  containers: [{name: c, image: i, resources: {limits: {cpu: 500m, memory: 1Mi}}}]\n"
		decoded, err := manifest.Decode([]byte(text))
		require.NoError(t, err)
		pod, err := manifest.Static([]byte(text), "node", "file:/a.yaml", manifest.StaticOptions{})
		require.NoError(t, err)
		assert.Equal(t, decoded.Spec.Resources, pod.Spec.Resources, resources)
		assert.Equal(t, want, podspec.QOSClass(pod), resources)
	}
}
