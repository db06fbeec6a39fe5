// Package certs requests and renews the certificates of a node: the client certificate for
// the API server, and the serving certificate of the node's own server.
//
// # Behavior
//
// [ValidConfig] determines whether the existing kubeconfig file is valid. The package also
// determines the content of certificate signing requests, the time at which a certificate is
// renewed, and the certificate that a new connection uses.
//
// A Rotation starts with the current certificate of its directory if that is valid for the
// node, or else with the one of the kubeconfig file. One that is embedded in this file, as
// kubeadm does on the nodes of a control plane, is copied to kubelet-client-current.pem and
// replaced at once.
//
// # Usage
//
//	cfg := certs.Config{
//		NodeName: "n1", Dir: "/var/lib/agent/pki", Kubeconfig: "/etc/agent/kubeconfig", Bootstrap: readBootstrap,
//	}
//	if err := certs.Bootstrap(ctx, cfg); err != nil { … } // blocks until there is a certificate
//	base, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
//	rotation, err := certs.NewRotation(base, cfg)
//	client, err := kubernetes.NewForConfig(rotation.Config())
//	…
//	err = rotation.Run(ctx)
//
// [NewPending] is for nodes that must run static pods before there is a certificate, which its
// Run requests.
//
// The serving certificate is [SelfSigned], or signed by the cluster:
//
//	serving, err := certs.NewServing(certs.ServingConfig{
//		NodeName: "n1", Dir: cfg.Dir, Client: client, Addresses: addresses,
//	})
//	tls.Config{GetCertificate: serving.Certificate}
//	…
//	err = serving.Run(ctx)
//
// # Concurrency
//
// Bootstrap blocks, and must return before the kubeconfig file is used. The methods of
// Rotation and Serving are safe for concurrent use; Run must be called once. A directory
// must be used by one process at a time.
//
// # Guarantees and limits
//
//   - The files are the kubelet's: kubelet-client-current.pem is a link to the current
//     certificate and key, so that a node can switch between both. They are readable by
//     their owner only, and are written atomically.
//   - After a restart a pending request is continued, since its key is stored.
//   - Bootstrap, and Run of a Rotation of NewPending, return an error if the first request is
//     denied. A Rotation that renews requests again, at most twice a minute.
//   - When a certificate is renewed, all connections of its clients are closed, so that new
//     ones use the new certificate.
//   - A serving certificate contains the addresses of the node, and is requested again when
//     they change, also while a request is pending. No controller of Kubernetes approves such
//     requests.
//   - Bootstrap credentials are read only while there is no valid certificate, and read again
//     while a request is pending.
//   - The clock is compared with the time of a renewal every hour.
//
// # Differences from the kubelet
//
//   - A kubeconfig with the certificate of another node is not used.
//   - A self-signed certificate is replaced at the next start if it expires within 30 days;
//     the kubelet never replaces it.
//   - If the client certificate has expired, a new one is requested with the bootstrap
//     credentials; the kubelet exits.
//   - An embedded certificate that has expired does not matter if it has been replaced by the
//     current one of the directory; the kubelet then requires the bootstrap kubeconfig. An
//     embedded one that expires without having been replaced prevents the start.
//   - A kubeconfig without a client certificate that has other credentials, such as a token,
//     is used as it is; the kubelet replaces it, or requests a certificate with them.
//
// # Testing
//
// Tests use a client-go fake that signs, in virtual time; test/kubelet uses a control
// plane.
//
// # Stability
//
// Growing: the API will be extended; a minor version may change it, and CHANGELOG.md
// describes how to migrate.
package certs
