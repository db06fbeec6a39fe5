package podconfig_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

func TestResolvConfs(t *testing.T) { // dn-5
	for _, tc := range []struct {
		name, text string
		want       podconfig.ResolvConf
		failure    string
	}{
		{"dn-5 empty", "", podconfig.ResolvConf{}, ""},
		{"dn-5 comments", "# nameserver 1\n  #search a\n; nameserver 2\n;nameserver 3\nnameserver 4 # five\n", podconfig.ResolvConf{Servers: []string{"4"}}, ""},
		{"dn-5 no address", "\nnameserver \n", podconfig.ResolvConf{}, "line 2: nameserver without an address"},
		{"dn-5 the last search line", "search a b\nsearch c. . d", podconfig.ResolvConf{Searches: []string{"c", "d"}}, ""},
		{"dn-5 an empty last search line", "search a b\nsearch", podconfig.ResolvConf{}, ""},
		{"dn-5 options by name", "options ndots:1 rotate\noptions ndots:2 edns0", podconfig.ResolvConf{Options: []string{"ndots:2", "rotate", "edns0"}}, ""},
		{"dn-5 unknown keywords", "domain x\nsortlist y\r\nnameserver 1\r\n", podconfig.ResolvConf{Servers: []string{"1"}}, ""},
		{"dn-5 too large", strings.Repeat("#\n", podconfig.MaxResolvConf/2+1), podconfig.ResolvConf{}, "more than 10485760 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := podconfig.ParseResolvConf(tc.text)
			if tc.failure != "" {
				require.EqualError(t, err, tc.failure)
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, fmt.Sprint(tc.want), fmt.Sprint(got))
		})
	}
}

// The parsed values can be written and parsed again without a change.
func FuzzParseResolvConf(f *testing.F) {
	f.Add("nameserver 1.1.1.1\nsearch a b.\noptions ndots:5\n")
	f.Add("nameserver\n;x\nsearch\n")
	f.Fuzz(func(t *testing.T, text string) {
		conf, err := podconfig.ParseResolvConf(text)
		if err != nil {
			assert.Zero(t, conf)
			return
		}
		var b strings.Builder
		for _, s := range conf.Servers {
			b.WriteString("nameserver " + s + "\n")
		}
		b.WriteString("options " + strings.Join(conf.Options, " ") + "\n")
		again, err := podconfig.ParseResolvConf(b.String())
		require.NoError(t, err)
		assert.Equal(t, conf.Servers, again.Servers)
		assert.Equal(t, conf.Options, again.Options)
	})
}

func TestTheNodesFileIsChecked(t *testing.T) { // dn-9
	cluster := podconfig.DNS{ClusterDomain: "cluster.local"}
	domains := func(n, length int) podconfig.ResolvConf {
		var conf podconfig.ResolvConf
		for range n {
			conf.Searches = append(conf.Searches, strings.Repeat("a", length))
		}
		return conf
	}
	for _, tc := range []struct {
		name string
		dns  podconfig.DNS
		host podconfig.ResolvConf
		err  error
		want string
	}{
		{"dn-9 no finding", cluster, domains(29, 1), nil, ""},
		{"dn-9 unreadable", cluster, domains(0, 0), errors.New("permission denied"), "permission denied"},
		{"dn-9 no room for the cluster's", cluster, domains(30, 1), nil, "Resolv.conf file '/etc/resolv.conf' contains search line consisting of more than 29 domains!"},
		{"dn-9 without a cluster", podconfig.DNS{ResolvConf: "/run/r.conf"}, domains(32, 1), nil, ""},
		{"dn-9 too many", podconfig.DNS{ResolvConf: "/run/r.conf"}, domains(33, 1), nil, "Resolv.conf file '/run/r.conf' contains search line consisting of more than 32 domains!"},
		{"dn-9 a long one", cluster, domains(1, 254), nil, `Resolv.conf file "/etc/resolv.conf" contains a search path which length is more than allowed 253 chars!`},
		{"dn-9 a long line", cluster, domains(9, 240), nil, "Resolv.conf file '/etc/resolv.conf' contains search line which length is more than allowed 2048 chars!"},
		{"dn-9 the first finding only", cluster, domains(30, 254), nil, "Resolv.conf file '/etc/resolv.conf' contains search line consisting of more than 29 domains!"},
		{"dn-9 no file is used", podconfig.DNS{NoResolvConf: true}, domains(40, 1), errors.New("x"), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.dns.CheckLimits(tc.host, tc.err)
			if tc.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.EqualError(t, err, tc.want)
		})
	}
	assert.Equal(t, "CheckLimitsForResolvConf", podconfig.ReasonCheckLimits)
}

func TestADNSConfigurationIsValidated(t *testing.T) {
	assert.NoError(t, podconfig.DNS{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "c.local"}.Validate())
	for _, bad := range []podconfig.DNS{
		{ClusterDNS: []string{""}}, {ClusterDNS: []string{"1 2"}}, {ClusterDomain: "a\nb"}, {NoResolvConf: true, ResolvConf: "/etc/resolv.conf"},
	} {
		assert.Error(t, bad.Validate(), "%+v", bad)
	}
}
