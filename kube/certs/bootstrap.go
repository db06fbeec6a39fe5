package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"

	"github.com/kubeparts/kubeparts/kube/internal/pause"
)

// How long to wait after a failed attempt, at first and at most.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// Bootstrap sees to it that there is a kubeconfig file whose certificate can be
// used. If there is none, it asks for a certificate, waits until it is given,
// and writes certificate and file. What fails is tried again until ctx ends,
// whose error it then returns with what was in the way last; a request that was
// denied is not made again, and an error at once.
func Bootstrap(ctx context.Context, cfg Config) error {
	if err := cfg.check(); err != nil {
		return err
	}
	if cfg.Kubeconfig == "" {
		return errors.New("certs: Config.Kubeconfig is empty")
	}
	why := usable(cfg)
	if why == nil {
		return nil
	}
	if cfg.Bootstrap == nil {
		return fmt.Errorf("certs: Config.Bootstrap is nil, and there is no other way: %w", why)
	}
	cfg.Logger.Info("asking for a certificate", "node", cfg.NodeName, "because", why)
	client, err := cfg.Client(cfg.Bootstrap)
	if err != nil {
		return fmt.Errorf("certs: Config.Bootstrap: %w", err)
	}
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		_, err := request(ctx, cfg, cfg.order(), client)
		if err == nil {
			err = writeKubeconfig(cfg)
		}
		var denied *deniedError
		if err == nil || errors.As(err, &denied) {
			return err
		}
		cfg.Logger.Warn("first certificate", "err", err)
		if pause.For(ctx, wait) != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// usable says what is wrong with the kubeconfig file that is there.
func usable(cfg Config) error {
	c, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
	if err != nil {
		return fmt.Errorf("certs: kubeconfig: %w", err)
	}
	if c.CertFile == "" {
		// Somebody else's: with a token, or with the certificate in it.
		if _, err := rest.TransportFor(c); err != nil {
			return fmt.Errorf("certs: kubeconfig %s: %w", cfg.Kubeconfig, err)
		}
		return nil
	}
	// Whoever made it may have chosen another name for the node's user.
	name := cfg.NodeName
	if c.CertFile != cfg.Current() {
		name = ""
	}
	return Valid(c.CertFile, name, time.Now())
}

// A deniedError is a refusal that asking again won't change.
type deniedError struct{ name, message string }

func (e *deniedError) Error() string {
	return fmt.Sprintf("certs: request %s was denied: %s", e.name, e.message)
}

// request asks once for what o says, and keeps what it is given.
func request(ctx context.Context, cfg Config, o order, client kubernetes.Interface) (*tls.Certificate, error) {
	keyFile := filepath.Join(cfg.Dir, o.prefix+".key.tmp")
	key, keyPEM, err := loadOrMakeKey(keyFile)
	if err != nil {
		return nil, err
	}
	data, err := certutil.MakeCSR(key, &o.subject, o.dns, o.ips)
	if err != nil {
		return nil, fmt.Errorf("certs: make a request: %w", err)
	}
	name, err := o.name(key)
	if err != nil {
		return nil, err
	}
	var lifetime *time.Duration
	if cfg.Lifetime > 0 {
		lifetime = &cfg.Lifetime
	}
	all := ctx
	ctx, cancel := context.WithTimeout(ctx, cfg.Patience)
	defer cancel()
	name, uid, err := csr.RequestCertificateWithContext(ctx, client, data, name, o.signer, lifetime, o.usages(key), key)
	if err != nil {
		return nil, fmt.Errorf("certs: ask for a certificate: %w", err)
	}
	certPEM, err := csr.WaitForCertificate(ctx, client, name, uid)
	if err != nil {
		if denied := deniedBy(ctx, client, name); denied != nil {
			return nil, errors.Join(denied, os.Remove(keyFile))
		}
		// A request that nobody answered is not to be waited for again.
		if ctx.Err() != nil && all.Err() == nil {
			err = errors.Join(err, os.Remove(keyFile))
		}
		return nil, fmt.Errorf("certs: request %s: %w", name, err)
	}
	store, err := o.store(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cert, err := store.Update(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certs: keep the certificate: %w", err)
	}
	if err := os.Remove(keyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("certs: remove the key's first copy: %w", err)
	}
	return cert, nil
}

func deniedBy(ctx context.Context, client kubernetes.Interface, name string) error {
	req, err := client.CertificatesV1().CertificateSigningRequests().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	for _, c := range req.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return &deniedError{name: name, message: c.Reason + ": " + c.Message}
		}
	}
	return nil
}

// writeKubeconfig writes the file whole, or not at all.
func writeKubeconfig(cfg Config) error {
	b := cfg.Bootstrap
	cluster := &clientcmdapi.Cluster{
		Server: b.Host, InsecureSkipTLSVerify: b.Insecure, TLSServerName: b.ServerName,
		CertificateAuthority: b.CAFile, CertificateAuthorityData: b.CAData,
	}
	if len(b.CAData) > 0 {
		cluster.CertificateAuthority = ""
	}
	file := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"default-cluster": cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"default-auth": {ClientCertificate: cfg.Current(), ClientKey: cfg.Current()}},
		Contexts:       map[string]*clientcmdapi.Context{"default-context": {Cluster: "default-cluster", AuthInfo: "default-auth", Namespace: "default"}},
		CurrentContext: "default-context",
	}
	data, err := clientcmd.Write(file)
	if err != nil {
		return fmt.Errorf("certs: write kubeconfig: %w", err)
	}
	dir := filepath.Dir(cfg.Kubeconfig)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("certs: write kubeconfig: %w", err)
	}
	tmp, err := os.CreateTemp(dir, filepath.Base(cfg.Kubeconfig)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("certs: write kubeconfig: %w", err)
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), cfg.Kubeconfig)
	}
	if err != nil {
		return fmt.Errorf("certs: write kubeconfig: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}
