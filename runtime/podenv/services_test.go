package podenv_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime/podenv"
)

func service(namespace, name, ip string, ports ...v1.ServicePort) *v1.Service {
	return &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1.ServiceSpec{ClusterIP: ip, Ports: ports}}
}

func port(name string, number int32) v1.ServicePort { return v1.ServicePort{Name: name, Port: number} }

func TestServiceVariables(t *testing.T) { // pe-12
	api := service("default", "kubernetes", "10.96.0.1", port("https", 443))
	const apiVars = "KUBERNETES_SERVICE_HOST=10.96.0.1 KUBERNETES_SERVICE_PORT=443 KUBERNETES_SERVICE_PORT_HTTPS=443 " +
		"KUBERNETES_PORT=tcp://10.96.0.1:443 KUBERNETES_PORT_443_TCP=tcp://10.96.0.1:443 KUBERNETES_PORT_443_TCP_PROTO=tcp " +
		"KUBERNETES_PORT_443_TCP_PORT=443 KUBERNETES_PORT_443_TCP_ADDR=10.96.0.1"
	const mineVars = "KUBERNETES_SERVICE_HOST=10.96.0.9"
	dns := service("prod", "my-dns", "10.96.0.10", v1.ServicePort{Name: "dns-udp", Port: 53, Protocol: v1.ProtocolUDP}, port("metrics", 9153))
	for _, tc := range []struct {
		name     string
		links    *bool
		services []*v1.Service
		want     string
	}{
		{"pe-12 none", nil, nil, ""},
		{"pe-12 the whole set, the first port leading", new(true), []*v1.Service{dns}, "MY_DNS_SERVICE_HOST=10.96.0.10 MY_DNS_SERVICE_PORT=53 " +
			"MY_DNS_SERVICE_PORT_DNS_UDP=53 MY_DNS_SERVICE_PORT_METRICS=9153 MY_DNS_PORT=udp://10.96.0.10:53 " +
			"MY_DNS_PORT_53_UDP=udp://10.96.0.10:53 MY_DNS_PORT_53_UDP_PROTO=udp MY_DNS_PORT_53_UDP_PORT=53 MY_DNS_PORT_53_UDP_ADDR=10.96.0.10 " +
			"MY_DNS_PORT_9153_TCP=tcp://10.96.0.10:9153 MY_DNS_PORT_9153_TCP_PROTO=tcp MY_DNS_PORT_9153_TCP_PORT=9153 MY_DNS_PORT_9153_TCP_ADDR=10.96.0.10"},
		{"pe-12 the API server's, always", new(false), []*v1.Service{dns, api}, apiVars},
		{"pe-1 not set: as the API server defaults", nil, []*v1.Service{service("prod", "a", "10.96.0.2"), api}, "A_SERVICE_HOST=10.96.0.2 " + apiVars},
		{"pe-12 one's own beats the API server's", new(true), []*v1.Service{service("prod", "kubernetes", "10.96.0.9"), api}, mineVars},
		{"pe-12 in any order", new(true), []*v1.Service{api, service("prod", "kubernetes", "10.96.0.9")}, mineVars},
		{"pe-12 without links one's own is none", new(false), []*v1.Service{service("prod", "kubernetes", "10.96.0.9"), api}, apiVars},
		{"pe-12 not other namespaces'", new(true), []*v1.Service{service("stage", "db", "10.96.0.3"), service("default", "web", "10.96.0.4")}, ""},
		{"pe-12 not those without an address", new(true), []*v1.Service{service("prod", "a", ""), service("prod", "b", "None"), nil}, ""},
		{"pe-12 IPv6", new(true), []*v1.Service{service("prod", "a", "fd00::a", port("", 80))}, "A_SERVICE_HOST=fd00::a A_SERVICE_PORT=80 " +
			"A_PORT=tcp://[fd00::a]:80 A_PORT_80_TCP=tcp://[fd00::a]:80 A_PORT_80_TCP_PROTO=tcp A_PORT_80_TCP_PORT=80 A_PORT_80_TCP_ADDR=fd00::a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := pod()
			p.Spec.EnableServiceLinks = tc.links
			env, err := podenv.New(podenv.Inputs{Pod: p, Services: tc.services}, &v1.Container{})
			require.NoError(t, err)
			var got []string
			for _, v := range env.Vars() {
				got = append(got, v.Name+"="+v.Value)
				assert.Equal(t, podenv.KindService, v.Source.Kind)
			}
			assert.Equal(t, tc.want, strings.Join(got, " "))
		})
	}
}

func TestAPodInTheMasterNamespaceHasItsVariablesOnce(t *testing.T) { // pe-12
	p := pod()
	p.Namespace = "default"
	for _, links := range []bool{true, false} {
		p.Spec.EnableServiceLinks = &links
		env, err := podenv.New(podenv.Inputs{Pod: p, Services: []*v1.Service{service("default", "kubernetes", "10.96.0.1")}}, &v1.Container{})
		require.NoError(t, err)
		assert.Len(t, env.Vars(), 1)
	}
}
