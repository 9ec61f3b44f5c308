/* SPDX-License-Identifier: Apache-2.0 */
/* Written by emlearn 0.23.2 from a tree of scikit-learn 1.9.1, by train.py. */
/* clang-format off */
    // !!! This file is generated using emlearn !!!
    #include <stdint.h>
static inline int32_t condition_tree_0(const float *features, int32_t features_length) {
          if (features[4] < 786.170990f) {
              if (features[5] < 732.699982f) {
                  if (features[5] < 600.938721f) {
                      if (features[5] < 576.233185f) {
                          return 0;
                      } else {
                          if (features[2] < 2.433535f) {
                              return 0;
                          } else {
                              return 0;
                          }
                      }
                  } else {
                      if (features[2] < 2.437634f) {
                          if (features[0] < 3825.570435f) {
                              return 3;
                          } else {
                              return 0;
                          }
                      } else {
                          if (features[5] < 731.316223f) {
                              return 0;
                          } else {
                              return 0;
                          }
                      }
                  }
              } else {
                  if (features[5] < 748.021210f) {
                      if (features[2] < 2.594406f) {
                          return 3;
                      } else {
                          return 0;
                      }
                  } else {
                      return 3;
                  }
              }
          } else {
              if (features[3] < 6477.375000f) {
                  return 2;
              } else {
                  return 1;
              }
          }
        }
int32_t condition_predict(const float *features, int32_t features_length) {
        int32_t votes[4] = {0,};
        int32_t _class = -1;
        _class = condition_tree_0(features, features_length); votes[_class] += 1;
        int32_t most_voted_class = -1;
        int32_t most_voted_votes = 0;
        for (int32_t i=0; i<4; i++) {
            if (votes[i] > most_voted_votes) {
                most_voted_class = i;
                most_voted_votes = votes[i];
            }
        }
        return most_voted_class;
    }
int condition_predict_proba(const float *features, int32_t features_length, float *out, int out_length) {
        int32_t _class = -1;
        for (int i=0; i<out_length; i++) {
            out[i] = 0.0f;
        }
        _class = condition_tree_0(features, features_length); out[_class] += 1.0f;
        // compute mean
        for (int i=0; i<out_length; i++) {
            out[i] = out[i] / 1;
        }
        return 0;
    }
