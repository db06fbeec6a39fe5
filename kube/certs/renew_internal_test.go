package certs

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestACertificateIsRenewedBetween70And90PercentOfItsTime(t *testing.T) {
	from := time.Unix(0, 0)
	c := &tls.Certificate{Leaf: &x509.Certificate{NotBefore: from, NotAfter: from.Add(100 * time.Hour)}}
	assert.WithinDuration(t, from.Add(70*time.Hour), renewAt(c, 0), time.Second)
	assert.WithinDuration(t, from.Add(90*time.Hour), renewAt(c, 1), time.Second)
}
