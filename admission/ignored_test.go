package admission_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/admission"
)

func TestFieldsWithoutEffectAreReported(t *testing.T) {
	p := pod("a", false)
	assert.Empty(t, admission.Ignored(p))
	windows := &v1.WindowsSecurityContextOptions{HostProcess: new(true)}
	p.Spec.SecurityContext = &v1.PodSecurityContext{WindowsOptions: windows}
	p.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{
		SecurityContext: &v1.SecurityContext{WindowsOptions: windows},
	}}}
	assert.Equal(t, []string{
		"spec.ephemeralContainers[0].securityContext.windowsOptions is ignored: it applies to Windows only",
		"spec.securityContext.windowsOptions is ignored: it applies to Windows only",
	}, admission.Ignored(p))
}

func TestAPodWithResourceClaimsIsRejected(t *testing.T) {
	p := pod("a", false)
	assert.Nil(t, admission.ResourceClaims(p))
	p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("gpu")}}
	r := admission.ResourceClaims(p)
	require.NotNil(t, r)
	assert.Equal(t, "resource claims (dynamic resource allocation) are not supported", r.Message)
}
