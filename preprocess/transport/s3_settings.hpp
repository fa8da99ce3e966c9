// SPDX-License-Identifier: Apache-2.0
// Credentials, region and endpoint for S3, found where the usual tools look for them.
#pragma once
#include <functional>
#include <string>

#include "preprocess/transport/http_client.hpp"

namespace convoy::preparation {

struct S3Settings {
  S3Identity identity;   ///< empty key: anonymous
  std::string endpoint;  ///< `https://host:port`; empty: Amazon's
};

/// Options first, then AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_DEFAULT_REGION,
/// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, then the profile AWS_PROFILE (`default`) of ~/.aws/credentials and
/// ~/.aws/config (or AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE). Throws Error(usage) where no credentials are found.
/// `environment` gives a variable's value, or an empty text.
S3Settings find_s3_settings(const TransferSpec& spec, const std::function<std::string(const char*)>& environment);

}  // namespace convoy::preparation
