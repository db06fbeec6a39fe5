package hollow

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// Kubelets returns a function that returns the kubelet's API of a node of this process, and nil
// for other nodes. It needs no [Port]: an API server in the same process, such as that of package
// kube/controllers/apiserver, passes on the requests for logs and commands. The handlers permit
// every request. If logger is nil, nothing is logged.
func Kubelets(nodes *fakenode.Nodes, logger *slog.Logger) (func(node string) http.Handler, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	m, err := newMetrics()
	if err != nil {
		return nil, err
	}
	p := &port{cfg: Port{Authenticator: auth.Anonymous{}, Authorizer: auth.AlwaysAllow{}}, log: logger, metrics: m, started: time.Now()}
	return func(node string) http.Handler {
		view, ok := nodes.View(node)
		if !ok {
			return nil
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, node, view) })
	}, nil
}
