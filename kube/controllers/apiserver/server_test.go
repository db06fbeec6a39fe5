package apiserver_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
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
	user      string // of requests; an administrator if empty
	token     string // of requests
	accept    string // header Accept

	anonymous http.RoundTripper // without a certificate; transport if nil
}

// tests run against both servers, each in a namespace of its own.
var tests = map[string]func(w *world, hooks *hooks){
	"webhooks":     testWebhooks,
	"failures":     testFailures,
	"policies":     testPolicies,
	"schemas":      testSchemas,
	"definitions":  testDefinitions,
	"cluster-ips":  testClusterIPs,
	"node-ports":   testNodePorts,
	"reinvocation": testReinvocation,
	"access":       testAccess,
	"connect":      testConnect,
	"escalation":   testEscalation,
	"tokens":       testTokens,
	"conversion":   testConversion,
	"tables":       testTables,
	"builtin":      testBuiltin,
	"deletion":     testDeletion,
}

func TestServer(t *testing.T) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			api := &apitest.Server{RequireNamespaces: true, NoCollection: true}
			admin, cas := newAdmin(t)
			stop, err := apiserver.Start(t.Context(), api, apiserver.Config{RBAC: true, ClientCAs: cas, Kubelet: func(string) http.Handler { return nil }})
			require.NoError(t, err)
			t.Cleanup(stop)
			runTest(&world{T: t, url: "https://apitest", transport: &direct{apiserver.Handler(api), admin}}, name, test)
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
	anonymous, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	require.NoError(t, err)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			runTest(&world{T: t, url: plane.URL, transport: transport, anonymous: anonymous}, name, test)
		})
	}
}

// newAdmin returns the certificate of an administrator and its authority, as those of an envtest.
func newAdmin(t *testing.T) (*x509.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return cert, pool
}

// direct passes requests with the certificate of an administrator, or with a token, to a handler.
type direct struct {
	http.Handler
	admin *x509.Certificate
}

func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{d.admin}}
	if r.Header.Get("Authorization") != "" {
		r.TLS.PeerCertificates = nil
	}
	rec := httptest.NewRecorder()
	d.ServeHTTP(rec, r)
	return rec.Result(), nil
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
	if w.user != "" {
		req.Header.Set("Impersonate-User", w.user)
	}
	if w.accept != "" {
		req.Header.Set("Accept", w.accept)
	}
	transport := w.transport
	if w.token != "" {
		req.Header.Set("Authorization", "Bearer "+w.token)
		if w.anonymous != nil {
			transport = w.anonymous
		}
	}
	res, err := transport.RoundTrip(req)
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

// watch returns the events of a watch until it ends.
func (w *world) watch(path string) []map[string]any {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), http.MethodGet, w.url+path, nil)
	require.NoError(w, err)
	res, err := w.transport.RoundTrip(req)
	require.NoError(w, err)
	defer res.Body.Close()
	var events []map[string]any
	for decoder := json.NewDecoder(res.Body); ; {
		var e map[string]any
		if decoder.Decode(&e) != nil {
			return events
		}
		events = append(events, e)
	}
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
	if r.URL.Path == "/convert" {
		convert(rw, r)
		return
	}
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
