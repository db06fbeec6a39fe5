package certificate

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// A state is the progress of one source. Its methods neither block nor read the clock.
type state struct {
	issued   *issued    // the current certificate; nil: none
	pending  *pending   // the request in progress; nil: none
	rejected *rejection // final; nil: none
	retryAt  time.Time  // earliest next request for a replacement after a failure
}

// An issued is a certificate with its key.
type issued struct {
	key, chain          []byte
	refreshAt, notAfter time.Time

	overdueReported, expiredReported bool // the event was recorded
}

// A pending is a request in progress.
type pending struct {
	name      string
	key       []byte
	abandonAt time.Time
}

// A rejection is the condition of a request that was denied or has failed.
type rejection struct{ condition, reason, message string }

func (r *rejection) denied() bool {
	return r.condition == certificatesv1.PodCertificateRequestConditionTypeDenied
}

// Error returns the kubelet's error of the mount.
func (r *rejection) Error() string {
	verb := "failed"
	if r.denied() {
		verb = "denied"
	}
	return fmt.Sprintf("PodCertificateRequest was permanently %s: reason=%q message=%q", verb, r.reason, r.message)
}

// event returns the message of the event.
func (r *rejection) event(request string) string {
	verb := "failed"
	if r.denied() {
		verb = "was denied"
	}
	return fmt.Sprintf("PodCertificateRequest %s %s, reason=%q, message=%q", request, verb, r.reason, r.message)
}

// observe applies the pending request as last observed, nil if it was not found. jitter is added to
// the time of the refresh.
func (s *state) observe(request *certificatesv1.PodCertificateRequest, now time.Time, jitter time.Duration) {
	if request == nil {
		if now.After(s.pending.abandonAt) {
			s.pending = nil
		}
		return
	}
	for _, c := range request.Status.Conditions {
		switch c.Type {
		case certificatesv1.PodCertificateRequestConditionTypeDenied, certificatesv1.PodCertificateRequestConditionTypeFailed:
			*s = state{rejected: &rejection{c.Type, c.Reason, c.Message}}
			return
		case certificatesv1.PodCertificateRequestConditionTypeIssued:
			chain := cleanChain(request.Status.CertificateChain)
			if len(chain) == 0 || request.Status.BeginRefreshAt == nil || request.Status.NotAfter == nil {
				return // the API server rejects such a status
			}
			refreshAt := request.Status.BeginRefreshAt.Add(jitter)
			if soon := now.Add(period); refreshAt.Before(soon) {
				refreshAt = soon
			}
			*s = state{issued: &issued{key: s.pending.key, chain: chain, refreshAt: refreshAt, notAfter: request.Status.NotAfter.Time}}
			return
		}
	}
}

// due reports whether a certificate must be requested now.
func (s *state) due(now time.Time) bool {
	return s.pending == nil && s.rejected == nil && !now.Before(s.retryAt) && (s.issued == nil || !now.Before(s.issued.refreshAt))
}

// nextAt returns the time at which the state must be updated even if no request has changed.
func (s *state) nextAt(now time.Time) time.Time {
	if s.pending == nil && now.Before(s.issued.refreshAt) {
		return s.issued.refreshAt
	}
	return now.Add(period)
}

// A warning is an event of the pod.
type warning struct{ reason, message string }

// warnings returns the events about an issued certificate that were not recorded before.
func (s *state) warnings(now time.Time) []warning {
	var all []warning
	i := s.issued
	if i.overdue(now) && !i.overdueReported {
		i.overdueReported = true
		all = append(all, warning{"CertificateOverdueForRefresh", "PodCertificate refresh overdue"})
	}
	if now.After(i.notAfter) && !i.expiredReported {
		i.expiredReported = true
		all = append(all, warning{"CertificateExpired", "PodCertificate expired"})
	}
	return all
}

// overdue reports whether the certificate should have been replaced at least 10 minutes ago.
func (i *issued) overdue(now time.Time) bool { return now.After(i.refreshAt.Add(10 * time.Minute)) }

// cleanChain returns the certificates of a chain without text between them and headers.
func cleanChain(chain string) []byte {
	var out bytes.Buffer
	for rest := []byte(chain); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return out.Bytes()
		}
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}))
	}
}
