package apiserver_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/controllers/apiserver"
)

// A world has an API server: ours, or the control.
type world struct {
	*testing.T
	url       string
	transport http.RoundTripper
}

// tests run against both servers, each in a namespace of its own.
var tests = map[string]func(w *world, hooks *hooks){
	"webhooks":     testWebhooks,
	"failures":     testFailures,
	"policies":     testPolicies,
	"schemas":      testSchemas,
	"definitions":  testDefinitions,
	"cluster-ips":  testClusterIPs,
	"reinvocation": testReinvocation,
}

func TestServer(t *testing.T) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			api := &apitest.Server{RequireNamespaces: true}
			stop, err := apiserver.Start(t.Context(), api, apiserver.Config{})
			require.NoError(t, err)
			t.Cleanup(stop)
			runTest(&world{t, "http://apitest", api}, name, test)
		})
	}
}

func TestIntegrationControl(t *testing.T) {
	lab.Need(t, "kubernetes")
	plane := lab.NewControlPlane(t, lab.ControlPlaneConfig{Bare: true})
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	require.NoError(t, err)
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { runTest(&world{t, plane.URL, transport}, name, test) })
	}
}

func runTest(w *world, name string, test func(*world, *hooks)) {
	w.Helper()
	w.expect(201, "", "POST", "/api/v1/namespaces", "metadata: {name: "+name+", labels: {test: "+name+"}}")
	test(w, newHooks(w.T))
}

// send sends a request with a body in YAML.
func (w *world) send(method, path, body string) (int, map[string]any, http.Header) {
	w.Helper()
	data, err := yaml.YAMLToJSON([]byte(body))
	require.NoError(w, err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(string(data)))
	require.NoError(w, err)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	res, err := w.transport.RoundTrip(req)
	require.NoError(w, err)
	defer res.Body.Close()
	var object map[string]any
	text, err := io.ReadAll(res.Body)
	require.NoError(w, err)
	if json.Unmarshal(text, &object) != nil {
		object = map[string]any{"message": string(text)} // not served yet
	}
	return res.StatusCode, object, res.Header
}

// expect sends a request whose response has a code and, unless it is empty, a message.
func (w *world) expect(code int, message, method, path, body string) map[string]any {
	w.Helper()
	got, object, _ := w.send(method, path, body)
	assert.Equal(w, code, got, "%s %s: %v", method, path, object["message"])
	if message != "" {
		assert.Equal(w, message, object["message"], "%s %s", method, path)
	}
	return object
}

// until repeats a dry run until its response has the code: configurations take effect later.
func (w *world) until(code int, path, body string) {
	w.Helper()
	require.Eventually(w, func() bool {
		got, _, _ := w.send("POST", path+"?dryRun=All", body)
		return got == code
	}, minute, tick)
}

// hooks is a webhook server. The path of a request selects the response: see ServeHTTP.
type hooks struct {
	url, ca string
	calls   atomic.Int64
}

func newHooks(t *testing.T) *hooks {
	h := &hooks{}
	server := httptest.NewUnstartedServer(h)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	h.url = server.URL
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	h.ca = base64.StdEncoding.EncodeToString(ca)
	return h
}

func (h *hooks) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	h.calls.Add(1)
	var review admissionv1.AdmissionReview
	if json.NewDecoder(r.Body).Decode(&review) != nil {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	res := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	patch := func(text string) {
		res.Patch, res.PatchType = []byte(text), new(admissionv1.PatchTypeJSONPatch)
	}
	var object struct {
		Data     map[string]string `json:"data"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(review.Request.Object.Raw, &object)
	switch r.URL.Path {
	case "/describe": // what the webhook sees
		rq := review.Request
		patch(fmt.Sprintf(`[{"op":"add","path":"/data/seen","value":"%s %s %s/%s name=%s dry=%t"}]`,
			rq.Operation, rq.Kind.Kind, rq.Namespace, rq.Resource.Resource, object.Metadata.Name, *rq.DryRun))
	case "/count":
		patch(fmt.Sprintf(`[{"op":"add","path":"/data/count","value":"%sx"}]`, object.Data["count"]))
	case "/once":
		if object.Data["once"] == "" {
			patch(`[{"op":"add","path":"/data/once","value":"1"}]`)
		}
	case "/deny":
		if review.Request.Operation == admissionv1.Delete || object.Data["deny"] != "" {
			res.Allowed = false
			res.Result = denial("not " + strings.ToLower(string(review.Request.Operation)) + "d")
		}
		res.Warnings = []string{"be careful"}
	case "/broken":
		http.Error(rw, "broken", http.StatusInternalServerError)
		return
	case "/slow":
		select {
		case <-r.Context().Done():
		case <-time.After(10 * time.Second):
		}
	}
	review.Response, review.Request = res, nil
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(review)
}
