package admission_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestFieldsWithoutEffectAreReported(t *testing.T) {
	var events []runtime.Event
	fields := admission.IgnoredFields(func(e runtime.Event) { events = append(events, e) })
	p := pod("a", false)
	require.Nil(t, fields.Admit(t.Context(), p))
	require.Empty(t, events)
	windows := &v1.WindowsSecurityContextOptions{HostProcess: new(true)}
	p.Spec.SecurityContext = &v1.PodSecurityContext{WindowsOptions: windows}
	p.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{
		SecurityContext: &v1.SecurityContext{WindowsOptions: windows},
	}}}
	require.Nil(t, fields.Admit(t.Context(), p))
	require.Equal(t, []runtime.Event{{
		Object: runtime.PodRef(p), Type: v1.EventTypeWarning, Reason: "IgnoredFields",
		Message: "spec.ephemeralContainers[0].securityContext.windowsOptions is ignored: it applies to Windows only; " +
			"spec.securityContext.windowsOptions is ignored: it applies to Windows only",
	}}, events)

	for range 12 {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{SecurityContext: &v1.SecurityContext{WindowsOptions: windows}})
	}
	require.Nil(t, fields.Admit(t.Context(), p))
	require.Len(t, events, 2)
	assert.Contains(t, events[1].Message, "; and 4 more")
}
