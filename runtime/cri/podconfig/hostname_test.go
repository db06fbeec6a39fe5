package podconfig_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

func TestHostnames(t *testing.T) {
	for _, tc := range []struct {
		name, pod             string
		spec                  v1.PodSpec
		host, domain, failure string
	}{
		{"pe-18 the pod's name", "web", v1.PodSpec{}, "web", "", ""},
		{"pe-18 the pod's name with dots", "web.a", v1.PodSpec{}, "web.a", "", ""},
		{"pe-18 the spec's", "web", v1.PodSpec{Hostname: "front"}, "front", "", ""},
		{"pe-18 a subdomain", "web", v1.PodSpec{Subdomain: "shops"}, "web", "shops.ns.svc.c.local", ""},
		{"pe-18 63 characters", strings.Repeat("a", 63), v1.PodSpec{}, strings.Repeat("a", 63), "", ""},
		{"pe-18 too long", strings.Repeat("a", 62) + "-.b", v1.PodSpec{}, strings.Repeat("a", 62), "", ""},
		{"pe-18 nothing left", strings.Repeat("-", 70), v1.PodSpec{}, "", "", "metadata.name: hostname"},
		{"pe-18 no label", "web", v1.PodSpec{Hostname: "a.b"}, "", "", `spec.hostname: pod Hostname "a.b" is not a valid DNS label`},
		{"pe-18 a long one", "web", v1.PodSpec{Hostname: strings.Repeat("a", 64)}, "", "", "spec.hostname"},
		{"pe-18 no subdomain", "web", v1.PodSpec{Subdomain: "a\nb"}, "", "", `spec.subdomain: pod Subdomain "a\nb" is not a valid DNS label`},
		{"pe-18 an override", "web", v1.PodSpec{Hostname: "front", Subdomain: "shops", HostnameOverride: new("x.example")}, "x.example", "", ""},
		{"pe-18 an empty override", "web", v1.PodSpec{Subdomain: "shops", HostnameOverride: new("")}, "web", "shops.ns.svc.c.local", ""},
		{"pe-18 an override of 64", "web", v1.PodSpec{HostnameOverride: new(strings.Repeat("a", 64))}, strings.Repeat("a", 64), "", ""},
		{"pe-18 a long override", "web", v1.PodSpec{HostnameOverride: new(strings.Repeat("a.", 32) + "a")}, "", "", "spec.hostnameOverride"},
		{"pe-18 no name as an override", "web", v1.PodSpec{HostnameOverride: new("a b")}, "", "", `spec.hostnameOverride: "a b" is not a valid DNS subdomain`},
		{"a hostile name", "web\nx", v1.PodSpec{}, "", "", "metadata.name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := dnsPod(tc.spec)
			pod.Name = tc.pod
			host, domain, err := podconfig.Hostname(pod, "c.local")
			if tc.failure != "" {
				assert.ErrorContains(t, err, tc.failure)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.host+"/"+tc.domain, host+"/"+domain)
		})
	}
}

func TestADomainOfNoClusterEndsInADot(t *testing.T) { // pe-18
	pod := dnsPod(v1.PodSpec{Subdomain: "shops", SetHostnameAsFQDN: new(true)})
	host, err := podconfig.SandboxHostname(pod, "")
	require.NoError(t, err)
	assert.Equal(t, "web.shops.ns.svc.", host)
}

func TestHostnamesOfSandboxes(t *testing.T) {
	for _, tc := range []struct {
		name, want, failure string
		spec                v1.PodSpec
	}{
		{name: "pe-18 the hostname alone", spec: v1.PodSpec{Subdomain: "shops"}, want: "web"},
		{name: "pe-19 set to false", spec: v1.PodSpec{Subdomain: "shops", SetHostnameAsFQDN: new(false)}, want: "web"},
		{name: "pe-19 as FQDN", spec: v1.PodSpec{Subdomain: "shops", SetHostnameAsFQDN: new(true)}, want: "web.shops.ns.svc.c.local"},
		{name: "pe-19 no domain", spec: v1.PodSpec{SetHostnameAsFQDN: new(true)}, want: "web"},
		{name: "pe-19 64 characters", spec: v1.PodSpec{Subdomain: strings.Repeat("s", 45), SetHostnameAsFQDN: new(true)},
			want: "web." + strings.Repeat("s", 45) + ".ns.svc.c.local"},
		{name: "pe-19 too long", spec: v1.PodSpec{Subdomain: strings.Repeat("s", 46), SetHostnameAsFQDN: new(true)},
			failure: "failed to construct FQDN from pod hostname and cluster domain, FQDN web." + strings.Repeat("s", 46) + ".ns.svc.c.local is too long (64 characters is the max, 65 characters requested)"},
		{name: "pe-19 long, but not set", spec: v1.PodSpec{Subdomain: strings.Repeat("s", 46)}, want: "web"},
		{name: "pe-19 the host's network", spec: v1.PodSpec{HostNetwork: true, Hostname: "front"}, want: ""},
		{name: "pe-18 an override", spec: v1.PodSpec{Subdomain: "shops", SetHostnameAsFQDN: new(true), HostnameOverride: new("x.example")}, want: "x.example"},
		{name: "pe-18 invalid", spec: v1.PodSpec{Hostname: "-"}, failure: "spec.hostname"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := podconfig.SandboxHostname(dnsPod(tc.spec), "c.local")
			if tc.failure != "" {
				assert.ErrorContains(t, err, tc.failure)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}
