package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
)

func kubeconfig(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const twoContexts = `apiVersion: v1
kind: Config
current-context: one
contexts:
- {name: one, context: {cluster: one, user: node}}
- {name: two, context: {cluster: two, user: node}}
clusters:
- {name: one, cluster: {server: "https://one:6443"}}
- {name: two, cluster: {server: "https://two:6443"}}
users:
- {name: node, user: {token: secret}}
`

func TestAKubeconfigFileIsRead(t *testing.T) {
	cfg, err := client.RESTConfig(client.Config{Kubeconfig: kubeconfig(t, twoContexts)})
	require.NoError(t, err)
	assert.Equal(t, "https://one:6443", cfg.Host)
	assert.Equal(t, "secret", cfg.BearerToken)
	cfg, err = client.RESTConfig(client.Config{Kubeconfig: kubeconfig(t, twoContexts), Context: "two"})
	require.NoError(t, err)
	assert.Equal(t, "https://two:6443", cfg.Host)
}

func TestErrorsNameTheInvalidField(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	missing := filepath.Join(t.TempDir(), "none")
	for name, tc := range map[string]struct {
		cfg  client.Config
		want string
	}{
		"no file":         {client.Config{Kubeconfig: missing}, missing},
		"no such context": {client.Config{Kubeconfig: kubeconfig(t, twoContexts), Context: "three"}, `context "three" does not exist`},
		"no YAML":         {client.Config{Kubeconfig: kubeconfig(t, "{")}, "client: kubeconfig "},
		"no pod":          {client.Config{}, "client: no kubeconfig, and no service account of a pod: "},
		"half of it":      {client.Config{Context: "two"}, `client: Config.Context is "two", but there is no Config.Kubeconfig`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.Connect(tc.cfg)
			require.ErrorContains(t, err, tc.want)
		})
	}
	_, err := client.ConnectTo(nil, client.Config{})
	require.EqualError(t, err, "client: REST configuration is nil")
	_, err = client.ConnectTo(&rest.Config{Host: "https://one:6443", BearerTokenFile: "x", Username: "a", Password: "b", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("no PEM")}}, client.Config{})
	require.ErrorContains(t, err, "client: create client for API: ")
}

func TestRequestsAreProtobufAndHaveAUserAgent(t *testing.T) {
	var seen atomic.Pointer[http.Request]
	api := new(apitest.Server)
	api.Put(newPod("web"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r)
		api.ServeHTTP(w, r)
	}))
	defer server.Close()
	for _, json := range []bool{false, true} {
		conn, err := client.ConnectTo(&rest.Config{Host: server.URL}, client.Config{JSON: json, UserAgent: "tiny/1.0"})
		require.NoError(t, err)
		pod, err := conn.API.CoreV1().Pods("prod").Get(t.Context(), "web", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, "web", pod.Name)
		want := "application/vnd.kubernetes.protobuf,application/json"
		if json {
			want = "application/json"
		}
		assert.Equal(t, want, seen.Load().Header.Get("Accept"))
		assert.Equal(t, "tiny/1.0", seen.Load().UserAgent())
	}
}

func TestOneKindOfCallDoesNotHoldUpAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		conn, err := client.ConnectTo(api.RESTConfig(), client.Config{QPS: 1, Burst: 5, EventQPS: 1, EventBurst: 5})
		require.NoError(t, err)
		timed := func(do func(ctx context.Context)) time.Duration {
			begin := time.Now()
			for range 10 {
				do(t.Context())
			}
			return time.Since(begin)
		}
		assert.Equal(t, 5*time.Second, timed(func(ctx context.Context) { _, _ = conn.API.CoreV1().Pods("prod").Get(ctx, "web", metav1.GetOptions{}) }))
		assert.Equal(t, 5*time.Second, timed(func(ctx context.Context) {
			_, _ = conn.Events.CoreV1().Events("prod").Create(ctx, new(v1.Event), metav1.CreateOptions{})
		}))
		assert.Equal(t, 5*time.Second, timed(func(ctx context.Context) {
			_, _ = conn.TokenReviews.AuthenticationV1().TokenReviews().Create(ctx, new(authenticationv1.TokenReview), metav1.CreateOptions{})
		}))
		assert.Equal(t, 5*time.Second, timed(func(ctx context.Context) {
			_, _ = conn.AccessReviews.AuthorizationV1().SubjectAccessReviews().Create(ctx, new(authorizationv1.SubjectAccessReview), metav1.CreateOptions{})
		}), "token reviews do not use the limit of access reviews")
		assert.Zero(t, timed(func(ctx context.Context) {
			_, _ = conn.Heartbeats.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		}))

		open, err := client.ConnectTo(api.RESTConfig(), client.Config{QPS: -1})
		require.NoError(t, err)
		assert.Zero(t, timed(func(ctx context.Context) { _, _ = open.API.CoreV1().Pods("prod").Get(ctx, "web", metav1.GetOptions{}) }))
	})
}

func TestAHeartbeatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apitest.Server{Fault: func(apitest.Call) apitest.Fault { return apitest.Fault{Hang: true} }}
		conn, err := client.ConnectTo(api.RESTConfig(), client.Config{})
		require.NoError(t, err)
		begin := time.Now()
		_, err = conn.Heartbeats.CoreV1().Nodes().Get(t.Context(), nodeName, metav1.GetOptions{})
		require.Error(t, err)
		assert.Equal(t, 10*time.Second, time.Since(begin))
	})
}

func TestACallerMayBoundHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apitest.Server{Fault: func(apitest.Call) apitest.Fault { return apitest.Fault{Latency: time.Minute} }}
		conn, err := client.ConnectTo(api.RESTConfig(), client.Config{HeartbeatTimeout: -1})
		require.NoError(t, err)
		api.Put(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}})
		_, err = conn.Heartbeats.CoreV1().Nodes().Get(t.Context(), nodeName, metav1.GetOptions{})
		assert.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = conn.Heartbeats.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
