// Package certs gets a node its certificates, and the next ones before they end: that
// which it shows to the API server, and that which it shows to who connects to it.
//
// # What it decides
//
// Whether the kubeconfig file that is there can be used ([Valid]), what is asked
// for if it can't, when the certificate is to be renewed, and which one a new
// connection shows.
//
// # Usage
//
//	cfg := certs.Config{NodeName: "n1", Dir: "/var/lib/agent/pki", Kubeconfig: "/etc/agent/kubeconfig", Bootstrap: bootstrap}
//	if err := certs.Bootstrap(ctx, cfg); err != nil { … } // waits until there is one
//	base, err := clientcmd.BuildConfigFromFlags("", cfg.Kubeconfig)
//	rotation, err := certs.NewRotation(base, cfg)
//	client, err := kubernetes.NewForConfig(rotation.Config())
//	…
//	err = rotation.Run(ctx)
//
// The certificate of the node's own server is [SelfSigned], or signed by the cluster:
//
//	serving, err := certs.NewServing(certs.ServingConfig{NodeName: "n1", Dir: cfg.Dir, Client: client, Addresses: addresses})
//	tls.Config{GetCertificate: serving.Certificate}
//	…
//	err = serving.Run(ctx)
//
// # Concurrency
//
// Bootstrap blocks, and is called before anything else is done with the file. A
// Rotation's methods may be called from anywhere, Run once. One process at a time
// works in one directory.
//
// # Guarantees and limits
//
//   - The files are the kubelet's: kubelet-client-current.pem is a link to the
//     certificate and key of the moment, so that either takes over from the other.
//     Nobody else may read them; a file is written whole or not at all.
//   - An agent that is started anew while it waits goes on with the request that it
//     has made: it keeps the key.
//   - A request that was denied ends Bootstrap. A Rotation asks again, twice a
//     minute at most.
//   - When a certificate is renewed, all connections of its clients are closed, and
//     opened anew with the new one.
//   - A serving certificate is for what the node is reached at, and asked for anew when
//     that changes. Nothing in a cluster approves such a request by itself.
//
// # Differences from the kubelet
//
//   - A kubeconfig whose certificate is that of another node is not used.
//   - A self-signed certificate is made anew when it ends within 30 days, at the next
//     start; a kubelet keeps it for ever.
//   - An agent whose certificate has expired goes on, and asks for a new one by the
//     way it got its first; the kubelet exits.
//
// # Testing
//
// Against a client-go fake whose cluster signs, in virtual time, and, in the
// agent's cluster suite, against a real one.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package certs
