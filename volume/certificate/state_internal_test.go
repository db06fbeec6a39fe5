package certificate

import (
	"encoding/pem"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func block(content string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(content)}))
}

func TestObserve(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
	condition := func(kind string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: "R", Message: "m"}}
	}
	old := &issued{key: []byte("old key"), refreshAt: now, notAfter: now.Add(time.Hour)}
	wait := &pending{name: "req-1", key: []byte("new key"), abandonAt: now.Add(10 * time.Minute)}
	lost := &pending{name: "req-1", key: []byte("new key"), abandonAt: now.Add(-time.Second)}
	issuedAt := func(refresh time.Duration) *issued {
		return &issued{key: wait.key, chain: []byte(block("leaf")), refreshAt: now.Add(refresh), notAfter: now.Add(24 * time.Hour)}
	}
	for _, c := range []struct {
		name   string
		before state
		status *certificatesv1.PodCertificateRequestStatus // nil: not found
		after  state
	}{
		{"not observed yet", state{pending: wait}, nil, state{pending: wait}},
		{"deleted", state{pending: lost}, nil, state{}},
		{"deleted, with a certificate", state{issued: old, pending: lost}, nil, state{issued: old}},
		{"no condition", state{issued: old, pending: lost}, new(certificatesv1.PodCertificateRequestStatus), state{issued: old, pending: lost}},
		{"another condition", state{pending: wait}, &certificatesv1.PodCertificateRequestStatus{Conditions: condition("Other")}, state{pending: wait}},
		{"issued", state{issued: old, pending: wait}, &certificatesv1.PodCertificateRequestStatus{
			Conditions: condition("Issued"), CertificateChain: block("leaf"), BeginRefreshAt: at(12 * time.Hour), NotAfter: at(24 * time.Hour),
		}, state{issued: issuedAt(12*time.Hour + time.Minute)}},
		{"to be refreshed at once", state{pending: wait}, &certificatesv1.PodCertificateRequestStatus{
			Conditions: condition("Issued"), CertificateChain: block("leaf"), BeginRefreshAt: at(-time.Hour), NotAfter: at(24 * time.Hour),
		}, state{issued: issuedAt(period)}},
		{"issued without a certificate", state{pending: wait}, &certificatesv1.PodCertificateRequestStatus{
			Conditions: condition("Issued"), CertificateChain: "text", BeginRefreshAt: at(0), NotAfter: at(0),
		}, state{pending: wait}},
		{"issued without times", state{pending: wait}, &certificatesv1.PodCertificateRequestStatus{
			Conditions: condition("Issued"), CertificateChain: block("leaf"),
		}, state{pending: wait}},
		{"denied", state{pending: wait}, &certificatesv1.PodCertificateRequestStatus{Conditions: condition("Denied")}, state{rejected: &rejection{"Denied", "R", "m"}}},
		{"the replacement has failed", state{issued: old, pending: wait}, &certificatesv1.PodCertificateRequestStatus{Conditions: condition("Failed")}, state{rejected: &rejection{"Failed", "R", "m"}}},
	} {
		var request *certificatesv1.PodCertificateRequest
		if c.status != nil {
			request = &certificatesv1.PodCertificateRequest{Status: *c.status}
		}
		s := c.before
		s.observe(request, now, time.Minute)
		assert.Equal(t, c.after, s, c.name)
	}
}

func TestDue(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	fresh, stale := &issued{refreshAt: now.Add(time.Second)}, &issued{refreshAt: now}
	for _, c := range []struct {
		name string
		state
		due  bool
		next time.Time // zero: none is issued
	}{
		{"nothing", state{}, true, time.Time{}},
		{"pending", state{pending: new(pending)}, false, time.Time{}},
		{"denied", state{rejected: new(rejection)}, false, time.Time{}},
		{"fresh", state{issued: fresh}, false, fresh.refreshAt},
		{"to be refreshed", state{issued: stale}, true, now.Add(period)},
		{"to be refreshed, after a failure", state{issued: stale, retryAt: now.Add(1)}, false, now.Add(period)},
		{"replacement pending", state{issued: stale, pending: new(pending)}, false, now.Add(period)},
	} {
		assert.Equal(t, c.due, c.state.due(now), c.name)
		if c.issued != nil {
			assert.Equal(t, c.next, c.nextAt(now), c.name)
		}
	}
}

func TestTheChainHasCertificatesOnly(t *testing.T) {
	withHeader := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Headers: map[string]string{"a": "b"}, Bytes: []byte("2")}))
	assert.Equal(t, block("1")+block("2"), string(cleanChain("# leaf\n"+block("1")+"text\n"+withHeader+"rubbish")))
	assert.Empty(t, cleanChain("-----BEGIN CERTIFICATE-----\nrubbish"))
}
