package podconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestPodsThatNeedAppArmor(t *testing.T) { // se-3
	profile := func(kind v1.AppArmorProfileType) *v1.AppArmorProfile { return &v1.AppArmorProfile{Type: kind} }
	of := func(p *v1.AppArmorProfile) *v1.Pod {
		return &v1.Pod{Spec: v1.PodSpec{SecurityContext: &v1.PodSecurityContext{AppArmorProfile: p}}}
	}
	init := &v1.Pod{Spec: v1.PodSpec{InitContainers: []v1.Container{
		{SecurityContext: &v1.SecurityContext{AppArmorProfile: profile(v1.AppArmorProfileTypeLocalhost)}},
	}}}
	annotated := func(p string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{appArmorAnnotation + "a": p}}}
	}
	want := &runtime.Rejection{Reason: "AppArmor", Message: "Cannot enforce AppArmor: AppArmor is not enabled on the host"}
	for name, tc := range map[string]struct {
		pod    *v1.Pod
		needed bool
	}{
		"none":                {&v1.Pod{}, false},
		"unconfined":          {of(profile(v1.AppArmorProfileTypeUnconfined)), false},
		"the runtime's":       {of(profile(v1.AppArmorProfileTypeRuntimeDefault)), true},
		"of an init one":      {init, true},
		"annotated":           {annotated("localhost/x"), true},
		"annotated to be off": {annotated("unconfined"), false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Nil(t, AdmitAppArmor(tc.pod, true))
			if tc.needed {
				assert.Equal(t, want, AdmitAppArmor(tc.pod, false))
			} else {
				assert.Nil(t, AdmitAppArmor(tc.pod, false))
			}
		})
	}
	assert.EqualError(t, want, want.Message)
}

func TestStrictGroupsRequireSupportOfTheRuntime(t *testing.T) { // se-6
	of := func(p v1.SupplementalGroupsPolicy) *v1.Pod {
		return &v1.Pod{Spec: v1.PodSpec{SecurityContext: &v1.PodSecurityContext{SupplementalGroupsPolicy: &p}}}
	}
	assert.Nil(t, AdmitGroups(&v1.Pod{}, false))
	assert.Nil(t, AdmitGroups(of(v1.SupplementalGroupsPolicyMerge), false))
	assert.Nil(t, AdmitGroups(of(v1.SupplementalGroupsPolicyStrict), true))
	rejection := AdmitGroups(of(v1.SupplementalGroupsPolicyStrict), false)
	assert.Equal(t, "SupplementalGroupsPolicyNotSupported", rejection.Reason)
	assert.Equal(t, "SupplementalGroupsPolicy=Strict is not supported in this node", rejection.Message)
}
