package server_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/kube/server"
)

// The formats are those that were observed with a kubelet 1.37.2.
func TestStatuszAndFlagz(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(c *server.Config) {
			c.Node.Statusz = &server.Statusz{Version: "v1.37.2", Started: time.Now().UTC()}
			c.Node.Flagz = map[string]string{"v": "4", "max-pods": "110"}
			c.Debugging.Handlers = true
		})
		time.Sleep(3723 * time.Second)
		const warning = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n"
		w := ask(s, "GET", "/statusz", "")
		assert.Equal(t, 200, w.Code)
		assert.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
		assert.Equal(t, "\nkubelet statusz\n"+warning+"\nStarted: Sat Jan  1 00:00:00 UTC 2000\nUp: 1 hr 02 min 03 sec\nGo version: "+runtime.Version()+
			"\nBinary version: 1.37.2\nEmulation version: 1.37\nPaths: /configz /debug /flagz /healthz\n", w.Body.String())
		assert.Equal(t, "\nkubelet flagz\n"+warning+"max-pods: 110\nv: 4\n", ask(s, "GET", "/flagz", "").Body.String())

		w = ask(s, "GET", "/statusz", "", "Accept: application/json;v=v1beta1;g=config.k8s.io;as=Statusz")
		assert.Equal(t, "application/json;g=config.k8s.io;v=v1beta1;as=Statusz", w.Header().Get("Content-Type"))
		assert.Empty(t, w.Header().Get("Warning"))
		assert.JSONEq(t, `{"kind": "Statusz", "apiVersion": "config.k8s.io/v1beta1", "metadata": {"name": "kubelet"}, "startTime": "2000-01-01T00:00:00Z",
			"uptimeSeconds": 3723, "goVersion": "`+runtime.Version()+`", "binaryVersion": "1.37.2", "emulationVersion": "1.37",
			"paths": ["/configz", "/debug", "/flagz", "/healthz"]}`, w.Body.String())

		w = ask(s, "GET", "/flagz", "", "Accept: application/yaml;v=v1alpha1;g=config.k8s.io;as=Flagz")
		assert.Equal(t, "application/yaml;g=config.k8s.io;v=v1alpha1;as=Flagz", w.Header().Get("Content-Type"))
		assert.Equal(t, `299 - "This version of the flagz endpoint is deprecated. Please use a newer version."`, w.Header().Get("Warning"))
		assert.Equal(t, "apiVersion: config.k8s.io/v1alpha1\nflags:\n  max-pods: \"110\"\n  v: \"4\"\nkind: Flagz\nmetadata:\n  name: kubelet\n", w.Body.String())

		w = ask(s, "GET", "/statusz", "", "Accept: application/json")
		assert.Equal(t, 406, w.Code)
		assert.JSONEq(t, `{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "NotAcceptable", "code": 406,
			"message": "only the following media types are accepted: application/json, application/yaml, text/plain"}`, w.Body.String())
		assert.Equal(t, 404, ask(s, "GET", "/statusz/", "").Code)
		assert.Equal(t, 404, ask(s.ReadOnly(), "GET", "/statusz", "").Code)
		assert.Equal(t, 404, ask(s.Healthz(), "GET", "/flagz", "").Code)
	})
}

func TestStatuszAndFlagzAreOptional(t *testing.T) {
	for name, change := range map[string]func(*server.Config){
		"neither is configured": func(c *server.Config) { c.Debugging.Handlers = true },
		"no debugging handlers": func(c *server.Config) {
			c.Debugging.Handlers, c.Node.Statusz, c.Node.Flagz = false, new(server.Statusz), map[string]string{}
		},
	} {
		s := newServer(t, change)
		assert.Equal(t, 404, ask(s, "GET", "/statusz", "").Code, name)
		assert.Equal(t, 404, ask(s, "GET", "/flagz", "").Code, name)
	}
}
