package certs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubeparts/kubeparts/kube/internal/pause"
)

// Backoff after a failed attempt, initially and at most.
const (
	initialBackoff = time.Second
	maxBackoff     = 30 * time.Second
)

// Bootstrap ensures that cfg.Kubeconfig exists and that its certificate is valid. If it is
// not, Bootstrap requests a certificate, waits until it is issued, and writes certificate
// and kubeconfig. A kubeconfig with other credentials, such as a token, is not changed.
// Failures are retried until ctx is done; it then returns the error of ctx, joined with the
// last failure. It returns an error immediately if cfg is invalid, if cfg.Bootstrap fails at
// first, and if the request is denied.
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
	bootstrap, err := cfg.bootstrap(invalid)
	if err != nil {
		return err
	}
	cfg.Logger.Info("Requesting client certificate", "node", cfg.NodeName, "reason", invalid)
	for wait := initialBackoff; ; wait = min(2*wait, maxBackoff) {
		if err == nil {
			err = requestFirst(ctx, cfg, bootstrap)
		}
		var denied *deniedError
		switch {
		case err == nil || errors.As(err, &denied):
			return err
		case errors.Is(err, errOutdated):
			wait = initialBackoff
			cfg.Logger.Info("Bootstrap credentials have changed; requesting another client certificate", "node", cfg.NodeName)
		default:
			cfg.Logger.Warn("Failed to request client certificate; will retry", "node", cfg.NodeName, "err", err)
		}
		if pause.For(ctx, wait) != nil {
			return errors.Join(ctx.Err(), err)
		}
		if checkKubeconfig(cfg) == nil {
			return nil // it was written meanwhile
		}
		bootstrap, err = cfg.Bootstrap()
	}
}

// requestFirst requests a certificate with bootstrap credentials and writes the kubeconfig
// file. It returns errOutdated if the credentials change while the request is pending.
func requestFirst(ctx context.Context, cfg Config, bootstrap *rest.Config) error {
	client, err := cfg.Client(bootstrap)
	if err != nil {
		return fmt.Errorf("certs: Config.Bootstrap: %w", err)
	}
	outdated := func() bool {
		now, err := cfg.Bootstrap()
		return err == nil && !sameCredentials(now, bootstrap)
	}
	if _, err := request(ctx, cfg, cfg.clientRequest(), client, outdated); err != nil {
		return err
	}
	return writeKubeconfig(cfg, bootstrap)
}

// sameCredentials reports whether two configurations connect to one server with the same
// credentials.
func sameCredentials(a, b *rest.Config) bool {
	return a.Host == b.Host && a.BearerToken == b.BearerToken && a.Username == b.Username && a.Password == b.Password &&
		reflect.DeepEqual(a.TLSClientConfig, b.TLSClientConfig)
}

// writeKubeconfig writes the kubeconfig file atomically, for the server of b.
func writeKubeconfig(cfg Config, b *rest.Config) error {
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
