package manifest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/podsource/manifest"
)

func TestValidateMountsOfContainers(t *testing.T) { // src-20
	const recursive = "recursiveReadOnly: Forbidden: may only be used with `readOnly` and without mount propagation"
	for name, tc := range map[string]struct{ mount, security, want string }{
		"recursively read-only":        {"readOnly: true, recursiveReadOnly: Enabled", "{}", ""},
		"if possible":                  {"readOnly: true, recursiveReadOnly: IfPossible, mountPropagation: None", "{}", ""},
		"disabled":                     {"recursiveReadOnly: Disabled, mountPropagation: HostToContainer", "{}", ""},
		"recursively, not read-only":   {"recursiveReadOnly: Enabled", "{}", recursive},
		"recursively and propagated":   {"readOnly: true, recursiveReadOnly: Enabled, mountPropagation: HostToContainer", "{}", recursive},
		"if possible and propagated":   {"readOnly: true, recursiveReadOnly: IfPossible, mountPropagation: HostToContainer", "{}", recursive},
		"bidirectional and privileged": {"mountPropagation: Bidirectional", "{privileged: true}", ""},
		"bidirectional":                {"mountPropagation: Bidirectional", "{privileged: false}", "mountPropagation: Forbidden"},
		"bidirectional, not specified": {"mountPropagation: Bidirectional", "{runAsUser: 1}", "mountPropagation: Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			pod, err := manifest.Decode([]byte("{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: default}, spec: {volumes: [{name: v, emptyDir: {}}], containers: [" +
				"{name: web, image: nginx, securityContext: " + tc.security + ", volumeMounts: [{name: v, mountPath: /a, " + tc.mount + "}]}]}}"))
			require.NoError(t, err)
			errs := manifest.Validate(manifest.Default(pod))
			if tc.want == "" {
				assert.Empty(t, errs)
				return
			}
			require.Len(t, errs, 1)
			assert.ErrorContains(t, errs[0], "spec.containers[0].volumeMounts[0]."+tc.want)
		})
	}
}
