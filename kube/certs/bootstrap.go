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

// Backoff after a failed attempt, initially and at most.
const (
	initialBackoff = time.Second
	maxBackoff     = 30 * time.Second
)

// Bootstrap ensures that cfg.Kubeconfig exists and that its certificate is valid. If it is
// not, Bootstrap requests a certificate, waits until it is issued, and writes certificate
// and kubeconfig. Failures are retried until ctx is done; it then returns the error of ctx,
// joined with the last failure. It returns an error immediately if cfg is invalid, and if
// the request is denied.
func Bootstrap(ctx context.Context, cfg Config) error {
	if err := cfg.check(); err != nil {
		return err
	}
	if cfg.Kubeconfig == "" {
		return errors.New("certs: Config.Kubeconfig is empty")
	}
	invalid := checkKubeconfig(cfg)
	if invalid == nil {
		return nil
	}
	if cfg.Bootstrap == nil {
		return fmt.Errorf("certs: Config.Bootstrap is nil: %w", invalid)
	}
	cfg.Logger.Info("Requesting client certificate", "node", cfg.NodeName, "reason", invalid)
	client, err := cfg.Client(cfg.Bootstrap)
	if err != nil {
		return fmt.Errorf("certs: Config.Bootstrap: %w", err)
	}
	for wait := initialBackoff; ; wait = min(2*wait, maxBackoff) {
		_, err := request(ctx, cfg, cfg.clientRequest(), client)
		if err == nil {
			err = writeKubeconfig(cfg)
		}
		var denied *deniedError
		if err == nil || errors.As(err, &denied) {
			return err
		}
		cfg.Logger.Warn("Failed to request client certificate; will retry", "node", cfg.NodeName, "err", err)
		if pause.For(ctx, wait) != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// checkKubeconfig returns why the kubeconfig file cannot be used; nil if it can.
func checkKubeconfig(cfg Config) error {
	c, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
	if err != nil {
		return fmt.Errorf("certs: kubeconfig: %w", err)
	}
	if c.CertFile == "" {
		// Not created by Bootstrap: with a token, or an embedded certificate.
		if _, err := rest.TransportFor(c); err != nil {
			return fmt.Errorf("certs: kubeconfig %s: %w", cfg.Kubeconfig, err)
		}
		return nil
	}
	// A certificate that Bootstrap has not requested may have any user name.
	name := cfg.NodeName
	if c.CertFile != cfg.Current() {
		name = ""
	}
	return Valid(c.CertFile, name, time.Now())
}

// A deniedError means that a request was denied, so that it must not be repeated.
type deniedError struct{ name, message string }

func (e *deniedError) Error() string {
	return fmt.Sprintf("certs: request %s was denied: %s", e.name, e.message)
}

// request requests a certificate once, waits until it is issued, and stores it.
func request(ctx context.Context, cfg Config, r certificateRequest, client kubernetes.Interface) (*tls.Certificate, error) {
	keyFile := filepath.Join(cfg.Dir, r.prefix+".key.tmp")
	key, keyPEM, err := loadOrGenerateKey(keyFile)
	if err != nil {
		return nil, err
	}
	data, err := certutil.MakeCSR(key, &r.subject, r.dns, r.ips)
	if err != nil {
		return nil, fmt.Errorf("certs: create certificate request: %w", err)
	}
	name, err := r.name(key)
	if err != nil {
		return nil, err
	}
	var lifetime *time.Duration
	if cfg.Lifetime > 0 {
		lifetime = &cfg.Lifetime
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, cfg.ApprovalTimeout)
	defer cancel()
	name, uid, err := csr.RequestCertificateWithContext(ctx, client, data, name, r.signer, lifetime, r.usages(key), key)
	if err != nil {
		return nil, fmt.Errorf("certs: request certificate: %w", err)
	}
	certPEM, err := csr.WaitForCertificate(ctx, client, name, uid)
	if err != nil {
		if denied := deniedBy(ctx, client, name); denied != nil {
			return nil, errors.Join(denied, os.Remove(keyFile))
		}
		// After a timeout the next attempt creates another request.
		if ctx.Err() != nil && caller.Err() == nil {
			err = errors.Join(err, os.Remove(keyFile))
		}
		return nil, fmt.Errorf("certs: request %s: %w", name, err)
	}
	store, err := r.store(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cert, err := store.Update(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certs: store certificate: %w", err)
	}
	if err := os.Remove(keyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("certs: remove temporary key: %w", err)
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

// writeKubeconfig writes the kubeconfig file atomically.
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
