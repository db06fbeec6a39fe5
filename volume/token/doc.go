// Package token caches the service account tokens of volumes and replaces them before they expire.
//
// # Behavior
//
// The package determines when a token is requested. Callers share a token if service
// account, audiences, lifetime and bound object are equal. A token is replaced when 20 %
// of its lifetime is left, or when it is 24 hours old (rule vol-56).
//
// # Usage
//
//	tokens, err := token.New(token.Config{Get: client.Token})
//	t, err := tokens.Token(ctx, "default", "builder", &authenticationv1.TokenRequest{…})
//	use(t.Value)
//	// call Token again at t.RefreshAt for a new token
//	tokens.Forget(pod.UID) // when the pod has terminated
//
// # Concurrency
//
// All methods are safe for concurrent use. Concurrent calls for the same token share one request.
//
// # Guarantees and limits
//
//   - An expired token is never returned. If the replacement of a token fails, the old one is
//     returned until it expires, and RefreshAt is the time of the next attempt.
//   - The package starts no goroutine and no timer. Users schedule the refresh, as volume.Manager
//     does with volume.SetUpResult.RefreshAt.
//   - Tokens are kept in memory only and do not occur in errors.
//
// # Differences from the kubelet
//
//   - A token has a refresh time, so that it is replaced even if its pod is not synced.
//   - The jitter of up to 10 s is chosen once per token.
//
// # Testing
//
// In a synctest bubble: lifetimes, failures, an API server that is unavailable until a token expires.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package token
