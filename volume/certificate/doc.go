// Package certificate obtains the certificates of podCertificate volumes from the signers of a
// cluster, and replaces them before they expire.
//
// # Behavior
//
// The package determines when a key is generated and a certificate requested: once for each podCertificate source of a
// volume, and again at the time that the signer has set as beginRefreshAt, plus a jitter of up to 5
// minutes. The new key replaces the old one together with its certificate.
//
//	             ┌───────────── issued ────────────┐
//	             ▼                                 │
//	pending ─▶ fresh ── beginRefreshAt ──▶ fresh, replacement pending
//	   │                                           │
//	   └──────────▶ denied or failed ◀─────────────┘
//
// # Usage
//
//	certificates, err := certificate.New(certificate.Config{Requests: requests})
//	bundle, err := certificates.Bundle(ctx, certificate.Source{Pod: pod, Volume: "tls", Projection: source})
//	write(bundle.Key, bundle.Chain)
//	// call Bundle again at bundle.RefreshAt, and when a PodCertificateRequest of the pod has changed
//	certificates.Forget(pod.UID, "tls") // when the volume is torn down
//
// # Concurrency
//
// All methods are safe for concurrent use. Calls for the same source are serialized.
//
// # Guarantees and limits
//
//   - Keys are generated here and kept in memory only. They occur in no request, error, event or log
//     record; the API server receives a signing request, which has the public key.
//   - The package starts no goroutine and no timer. Users schedule the calls, as volume.Manager does
//     with volume.SetUpResult.RefreshAt and volume.Manager.ObjectChanged.
//   - After a restart of the agent every certificate is requested again, since nothing is stored.
//   - A denied or failed request is final for the source, even if its previous certificate is still
//     valid, until the pod is deleted or the agent restarted.
//   - A request that is not observed for 10 to 15 minutes was deleted, and is replaced by another
//     one.
//   - If a replacement is not issued in time, the previous certificate is returned even after it has
//     expired, with the events CertificateOverdueForRefresh, 10 minutes after the refresh was due,
//     and CertificateExpired.
//   - A source that is not read for 30 minutes after it should have been is discarded.
//
// # Differences from the kubelet
//
//   - The messages of the events Denied and Failed contain the request, reason and message. The
//     kubelet's contain the reason, and the rest as a formatting error.
//   - A request that is issued without certificate or times is pending; the kubelet panics.
//   - A certificate is requested at most once per minute, whatever the signer sets as
//     beginRefreshAt.
//
// # Testing
//
// A table of the transitions, and lifetimes in a synctest bubble. kube/client tests the requests.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package certificate
