package credentials

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// An account is the service account of a request to a plugin. The zero value means none.
type account struct {
	namespace, name, uid string

	annotations map[string]string // those that are sent to the plugin
}

// account returns the service account with which the plugin is called, and whether it is
// called. A pod without the required account or annotations has not opted in to the plugin;
// this is not an error.
func (p *plugin) account(ctx context.Context, tokens TokenSource, pod *v1.Pod) (acct account, call bool, err error) {
	a := p.TokenAttributes
	if pod == nil || pod.Spec.ServiceAccountName == "" {
		if *a.RequireServiceAccount && tokens == nil {
			return account{}, false, errNoTokens
		}
		return account{}, !*a.RequireServiceAccount, nil
	}
	if tokens == nil {
		return account{}, false, errNoTokens
	}
	acct = account{namespace: pod.Namespace, name: pod.Spec.ServiceAccountName}
	sa, err := tokens.ServiceAccount(ctx, acct.namespace, acct.name)
	if err == nil && sa == nil {
		err = errors.New("not found")
	}
	if err != nil {
		return account{}, false, fmt.Errorf("get service account %s/%s: %w", acct.namespace, acct.name, err)
	}
	acct.uid = string(sa.UID)
	acct.annotations = map[string]string{}
	for _, key := range a.RequiredServiceAccountAnnotationKeys {
		value, ok := sa.Annotations[key]
		if !ok {
			return account{}, false, nil
		}
		acct.annotations[key] = value
	}
	for _, key := range a.OptionalServiceAccountAnnotationKeys {
		if value, ok := sa.Annotations[key]; ok {
			acct.annotations[key] = value
		}
	}
	return acct, true, nil
}

var errNoTokens = errors.New("not called: requires service account tokens, but there is no TokenSource")

// key returns the cache key of the account, "" for none. It changes if the account is recreated
// or its annotations change.
func (a account) key() string {
	if a.name == "" {
		return ""
	}
	parts := []string{a.namespace, a.name, a.uid}
	for _, k := range slices.Sorted(maps.Keys(a.annotations)) {
		parts = append(parts, k, a.annotations[k])
	}
	return fmt.Sprintf("%q", parts)
}

// tokenHash returns a hash of a token, for use in keys.
func tokenHash(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token))) }
