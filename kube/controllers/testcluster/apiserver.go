package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/util/keyutil"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/controllers/apiserver"
)

// apiFlags are the flags of kube-apiserver that have an effect.
var apiFlags = []string{
	"bind-address", "secure-port", "cert-dir", "tls-cert-file", "tls-private-key-file", "client-ca-file", "service-cluster-ip-range",
	"authorization-mode", "service-account-signing-key-file", "service-account-issuer", "garbage-collection",
}

const apiHelp = `  --bind-address=ADDRESS            default 127.0.0.1
  --secure-port=PORT                default 6443
  --cert-dir=DIRECTORY              of apiserver.crt and apiserver.key
  --tls-cert-file=FILE              in place of these
  --tls-private-key-file=FILE       likewise
  --client-ca-file=FILE             certificate authority of client certificates
  --service-cluster-ip-range=CIDR   of the cluster IPs of Services; default 10.0.0.0/24
  --authorization-mode=MODES        RBAC authorizes requests; other modes permit everything
  --service-account-signing-key-file=FILE   of the tokens of ServiceAccounts
  --service-account-issuer=URL      likewise
  --garbage-collection=MODE         async, sync or off: see "testcluster up --help"; default off, as in an envtest
Other flags of kube-apiserver are accepted and have no effect.
`

// history is the number of changes of each resource that a server keeps, and gcPercent the
// growth of its heap between two garbage collections: several servers run at the same time.
const (
	history   = 250
	gcPercent = 50
)

// removalLatency is the latency of a kube-apiserver with etcd.
const removalLatency = 5 * time.Millisecond

// collectionLatency is that of the garbage collector and the namespace controller in a cluster.
const collectionLatency = 20 * time.Millisecond

// newServer returns a server, to be started with [apiserver.Start]. collection is when it does the
// work of the garbage collector and the namespace controller: async, sync or off.
func newServer(collection string) (*apitest.Server, error) {
	api := &apitest.Server{RequireNamespaces: true, NoRecord: true, History: history, RemovalLatency: removalLatency}
	switch collection {
	case "async":
		api.CollectionLatency = collectionLatency
	case "sync":
	case "off":
		api.NoCollection = true
	default:
		return nil, fmt.Errorf("--garbage-collection=%s: want async, sync or off", collection)
	}
	return api, nil
}

// serveAPI serves an API server with the flags that an envtest passes to kube-apiserver.
func serveAPI(ctx context.Context, args []string, out, log io.Writer) error {
	values, ignored, err := parseGiven("kube-apiserver", args, apiFlags, apiHelp, out)
	if err != nil {
		return err
	}
	if len(ignored) > 0 {
		_, _ = fmt.Fprintf(log, "kube-apiserver of testcluster: no effect: %s\n", strings.Join(ignored, ", "))
	}
	cfg, err := apiConfig(values)
	if err != nil {
		return err
	}
	api, err := newServer(cmp.Or(values["garbage-collection"], "off"))
	if err != nil {
		return err
	}
	config, err := tlsConfig(values)
	if err != nil {
		return err
	}
	address := net.JoinHostPort(cmp.Or(values["bind-address"], "127.0.0.1"), cmp.Or(values["secure-port"], "6443"))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w: choose another port with --secure-port", err)
	}
	debug.SetGCPercent(gcPercent)
	stop, err := apiserver.Start(ctx, api, cfg)
	if err != nil {
		return err
	}
	defer stop()
	return serve(ctx, listener, apiserver.Handler(api), config)
}

// apiConfig returns the configuration of the flags.
func apiConfig(values given) (apiserver.Config, error) {
	cfg := apiserver.Config{
		RBAC: slices.Contains(strings.Split(values["authorization-mode"], ","), "RBAC"), Issuer: values["service-account-issuer"],
	}
	if first, _, _ := strings.Cut(values["service-cluster-ip-range"], ","); first != "" {
		var err error
		if cfg.ServiceCIDR, err = netip.ParsePrefix(first); err != nil {
			return cfg, fmt.Errorf("--service-cluster-ip-range: %w", err)
		}
	}
	if file := values["service-account-signing-key-file"]; file != "" {
		key, err := keyutil.PrivateKeyFromFile(file)
		if err != nil {
			return cfg, fmt.Errorf("--service-account-signing-key-file: %w", err)
		}
		cfg.TokenKey = key
	}
	if file := values["client-ca-file"]; file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return cfg, fmt.Errorf("--client-ca-file: %w", err)
		}
		cfg.ClientCAs = x509.NewCertPool()
		if !cfg.ClientCAs.AppendCertsFromPEM(data) {
			return cfg, fmt.Errorf("--client-ca-file: %s has no certificate in PEM", file)
		}
	}
	return cfg, nil
}

// tlsConfig returns the certificate of the server.
func tlsConfig(values given) (*tls.Config, error) {
	cert, key := values["tls-cert-file"], values["tls-private-key-file"]
	if cert == "" {
		cert, key = filepath.Join(values["cert-dir"], "apiserver.crt"), filepath.Join(values["cert-dir"], "apiserver.key")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%w: set --cert-dir to a directory with apiserver.crt and apiserver.key, as an envtest does, or use \"testcluster up\"", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert}, nil
}
