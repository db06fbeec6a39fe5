package kubelet

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// clusterAPI: the node authorizes by the cluster's roles, and authenticates by
// certificates and by tokens; a client that may only read nodes/proxy gets no stream.
func clusterAPI(t *testing.T, r *room) {
	node, err := r.api.CoreV1().Nodes().Get(t.Context(), "node", metav1.GetOptions{})
	require.NoError(t, err)
	port := node.Status.DaemonEndpoints.KubeletEndpoint.Port
	require.NotZero(t, port, "the node reports the port of its API")
	at := "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))

	allow := func(user rbacv1.Subject, name string, resources []string, verbs ...string) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: r.name + "-" + name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources, Verbs: verbs}}}
		_, err := r.api.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = r.api.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: role.ObjectMeta, Subjects: []rbacv1.Subject{user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}
	}
	allow(user("reader"), "reader", []string{"nodes/proxy"}, "get")
	allow(user("lister"), "lister", []string{"nodes/pods"}, "get")
	allow(rbacv1.Subject{Kind: "ServiceAccount", Namespace: r.name, Name: "default"}, "scraper", []string{"nodes/stats"}, "get")

	// ask returns the response of the node itself.
	ask := func(cfg *rest.Config, path string, headers ...string) (int, string) {
		cfg = rest.CopyConfig(cfg)
		cfg.TLSClientConfig.Insecure, cfg.TLSClientConfig.CAData, cfg.TLSClientConfig.CAFile = true, nil, ""
		cfg.NextProtos = []string{"http/1.1"} // upgrades require HTTP/1.1
		client, err := rest.HTTPClientFor(cfg)
		require.NoError(t, err)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+path, nil)
		require.NoError(t, err)
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			request.Header.Set(name, value)
		}
		answer, err := client.Do(request)
		require.NoError(t, err, path)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(body)
	}
	as := func(name string) *rest.Config {
		cfg, err := clientcmd.BuildConfigFromFlags("", r.control.UserKubeconfig(name))
		require.NoError(t, err)
		return cfg
	}
	token, err := r.api.CoreV1().ServiceAccounts(r.name).CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	upgrade := []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: v5.channel.k8s.io"}

	r.make("web", spec("trap 'exit 0' TERM; sleep 3600 & wait"))
	r.untilPhase("web", v1.PodRunning)
	r.until("a role is seen", func() error {
		if code, body := ask(as("reader"), "/configz"); code != 200 {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	exec := "/exec/" + r.name + "/web/main?command=id&output=1"
	for _, c := range []struct {
		who     string
		cfg     *rest.Config
		path    string
		headers []string
		code    int
		text    string
	}{
		{"anonymous", &rest.Config{}, "/pods", nil, 401, "Unauthorized"},
		{"a bad token", &rest.Config{BearerToken: "made.up.token"}, "/pods", nil, 401, "Unauthorized"},
		{"no permissions", as("stranger"), "/pods", nil, 403, "Forbidden (user=stranger, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"},
		{"may list pods", as("lister"), "/pods", nil, 200, `"name":"web"`},
		{"may only list pods", as("lister"), "/configz", nil, 403, "Forbidden"},
		{"may read", as("reader"), "/pods", nil, 200, `"name":"web"`},
		{"may read", as("reader"), "/runningpods/", nil, 200, `"name":"web"`},
		{"may read", as("reader"), "/healthz", nil, 200, "ok"},
		{"may read", as("reader"), "/metrics", nil, 403, "subresource(s)=[metrics]"},
		{"may only read", as("reader"), exec, upgrade, 403, "Forbidden (user=reader, verb=create, resource=nodes, subresource(s)=[proxy])\n"},
		{"may only read", as("reader"), exec, nil, 403, "verb=create"},
		{"a token", &rest.Config{BearerToken: token.Status.Token}, "/stats/summary", nil, 200, `"nodeName":"node"`},
		{"a token", &rest.Config{BearerToken: token.Status.Token}, "/pods", nil, 403, "user=system:serviceaccount:" + r.name + ":default"},
	} {
		code, body := ask(c.cfg, c.path, c.headers...)
		assert.Equal(t, c.code, code, "%s: %s: %.200s", c.who, c.path, body)
		assert.Contains(t, body, c.text, "%s: %s", c.who, c.path)
	}
	_, unknown := issue(t) // by a CA that is not the cluster's
	answer, err := overTLS(unknown).Get(at + "/pods")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusUnauthorized, answer.StatusCode, "a certificate of another CA")
	// And through the API server.
	data, err := r.api.CoreV1().RESTClient().Get().Resource("nodes").Name("node").SubResource("proxy").Suffix("healthz").DoRaw(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "ok", string(data))
	r.delete("web", -1)
	r.untilGone("web")
}
